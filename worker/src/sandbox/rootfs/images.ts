/**
 * Names of images, as the light runtime reads them:
 *   NAME[:TAG]                 in the node's store, else exported from an engine that answers (pulled by it when it lacks it)
 *   docker-archive:/FILE       a file of `docker save`, plain or compressed
 *   oci:/DIR[:REF]             an OCI layout
 *   dir:/DIR                   a root file system as it is: used in place and never written; must not change meanwhile
 *   host+dir:/DIR              the host's system below, the contents of DIR (opt/…, testbed/…) above; same rule
 * `dir:` and `host+dir:` take environment, folder and user from a file `/DIR.json` beside the tree: `{"Env": ["A=b"],
 * "WorkingDir": "/testbed", "User": ""}`, the `Config` of `docker inspect`.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createSemaphore, createSingleFlight, RolloutFailure } from '@swefarm/shared';
import { configBeside, EMPTY_CONFIG, type ImageConfig } from '../../images/config.ts';
import { withTag } from '../../images/names.ts';
import type { ImageStore, StoredImage, Unpack } from '../../images/store.ts';
import { requireMountable } from '../namespaces/mounts.ts';
import type { ReadyImage } from '../runtime.ts';
import type { EngineSource } from './engine.ts';
import { hostTree } from './hosttree.ts';
import { unpackInThread } from './unpacking.ts';

/** What a container is made of. */
export type RootImage = {
  config: ImageConfig;
  /** Read-only layers, the topmost first. */
  lowers: string[];
  /** Folders mounted above the root (`usr`), each with its own layers. */
  folders: { at: string; lowers: string[] }[];
};

export type ImageSource = {
  ensure(name: string, signal: AbortSignal): Promise<ReadyImage>;
  /** What `ensure` made ready, by its `ref`. Throws RolloutFailure image_not_found. */
  layers(image: ReadyImage): RootImage;
};

const UNPACK_AT_ONCE = 2;
/** An engine is asked this seldom whether a name stands for another image by now. */
const NAME_TRUSTED_MS = 60_000;

export type ImageDeps = {
  store: ImageStore;
  /** Null where none is to be asked. */
  engine: EngineSource | null;
  /** Called with each freshly unpacked tree before anybody else can see it; its failure is not the image's. */
  prepare(image: RootImage): Promise<void>;
};

export function imageSource({ store, engine, prepare }: ImageDeps): ImageSource {
  const unpackers = createSemaphore(UNPACK_AT_ONCE);
  const known = new Map<string, RootImage>();
  const trusted = new Map<string, { image: ReadyImage; until: number }>();
  const underWay = createSingleFlight<ReadyImage>();
  const owners = process.getuid?.() === 0;

  const prepared =
    (unpack: Unpack): Unpack =>
    (partial) =>
      unpackers.run(async () => {
        const done = await unpack(partial);
        await prepare({ config: done.config, lowers: [join(partial, 'tree')], folders: [] });
        return done;
      });

  const keep = (name: string, stored: StoredImage): ReadyImage => {
    known.set(stored.digest, { config: stored.config, lowers: [stored.tree], folders: [] });
    return { name, digest: stored.digest, ref: stored.digest };
  };

  const fromFile = async (name: string, path: string, kind: 'oci' | 'docker-archive', ref: string | null) => {
    const found = await stat(path).catch(() => null);
    if (!found) throw new RolloutFailure('image_not_found', `image ${name}: there is no ${path}`);
    // The file's own identity is part of the key: another file under the same name is another image.
    const key = `${kind}:${await realpath(path)}:${ref ?? ''}:${found.size}:${found.mtimeMs}:${found.ino}`;
    const digest = await store.digestOf(key);
    const present = digest === null ? null : await store.find(digest);
    if (present) return keep(name, present);
    const source = kind === 'oci' ? { kind, path, ref } : { kind, path };
    const unpack = prepared((partial) => unpackInThread({ source, partial, owners }, NEVER_ABORTED));
    const stored = await store.ensure(key, unpack, NEVER_ABORTED);
    await store.name(key, stored.digest);
    return { ...keep(name, stored), pulled: true };
  };

  const fromEngine = async (name: string): Promise<ReadyImage> => {
    const tagged = withTag(name);
    const digest = await store.digestOf(tagged);
    let image = (await engine?.inspect(name)) ?? null;
    const wanted = image?.digest ?? digest;
    const present = wanted === null ? null : await store.find(wanted);
    if (present) {
      if (present.digest !== digest) await store.name(tagged, present.digest);
      return keep(name, present);
    }
    image ??= (await engine?.pull(name)) ?? null;
    if (!image || !engine) {
      const remedy = engine ? 'no engine answers' : 'no engine is configured';
      throw new RolloutFailure(
        'image_not_found',
        `image ${name} is not in the store ${store.root} and ${remedy}`,
      );
    }
    const found = image;
    const stored = await store.ensure(
      found.digest,
      prepared((partial) => engine.export(name, found, partial, NEVER_ABORTED)),
      NEVER_ABORTED,
    );
    await store.name(tagged, stored.digest);
    return { ...keep(name, stored), pulled: true };
  };

  const inPlace = async (name: string, given: string, host: boolean): Promise<ReadyImage> => {
    const path = await realpath(given).catch(() => null);
    const found = path === null ? null : await stat(path);
    if (path === null || !found?.isDirectory()) {
      throw new RolloutFailure('image_not_found', `image ${name}: there is no folder ${given}`);
    }
    requireMountable(path);
    const config = (await configBeside(path)) ?? EMPTY_CONFIG;
    const below = host ? await hostTree(store, NEVER_ABORTED) : null;
    const state = `${path} ${found.ino} ${found.mtimeMs} ${JSON.stringify(config)} ${below?.tree}`;
    const digest = `sha256:${createHash('sha256').update(state).digest('hex')}`;
    known.set(name, {
      config,
      lowers: below ? [path, below.tree] : [path],
      folders: (below?.folders ?? []).map((at) => ({
        at,
        lowers: existsSync(join(path, at)) ? [join(path, at), `/${at}`] : [`/${at}`],
      })),
    });
    return { name, digest, ref: name };
  };

  const make = async (name: string): Promise<ReadyImage> => {
    const [, kind, path] = /^(docker-archive|oci|dir|host\+dir):(\/.*)$/.exec(name) ?? [];
    if (kind === 'dir' || kind === 'host+dir') return inPlace(name, path ?? '', kind === 'host+dir');
    if (kind === 'docker-archive') return fromFile(name, path ?? '', kind, null);
    if (kind === 'oci') return fromFile(name, ...ociPath(path ?? ''));
    if (/^(docker-archive|oci|dir|host\+dir):/.test(name)) {
      throw new RolloutFailure('image_not_found', `image ${name}: the path must be absolute`);
    }
    const image = await fromEngine(name);
    trusted.set(name, { image: { ...image, pulled: false }, until: Date.now() + NAME_TRUSTED_MS });
    return image;
  };

  return {
    async ensure(name, signal) {
      const recent = trusted.get(name);
      if (recent && recent.until > Date.now() && (await store.find(recent.image.digest))) return recent.image;
      return await underWay.run(name, () => make(name), signal);
    },
    layers(image) {
      const found = known.get(image.ref);
      if (!found)
        throw new RolloutFailure('image_not_found', `image ${image.name} was not made ready by this runtime`);
      return found;
    },
  };
}

const NEVER_ABORTED = new AbortController().signal;

function ociPath(path: string): [string, 'oci', string | null] {
  const at = path.lastIndexOf(':');
  return at < 0 || existsSync(path) ? [path, 'oci', null] : [path.slice(0, at), 'oci', path.slice(at + 1)];
}
