/**
 * Forms of image names in the rootfs runtime:
 *   NAME[:TAG|@DIGEST]         in the node's store, else exported from an engine, which pulls a missing image; without an engine fetched
 *                              from the registry
 *   docker-archive:/FILE       a file of `docker save`, plain or compressed
 *   oci:/DIR[:REF]             an OCI layout
 *   dir:/DIR                   a root file system, used in place and never written; DIR must not change while in use
 *   host+dir:/DIR              the host's system below, the contents of DIR (opt/…, testbed/…) above; DIR must not change while in use
 * `dir:` and `host+dir:` take environment, folder and user from a file `/DIR.json`, in the format of `Config` of `docker inspect`:
 * `{"Env": ["A=b"], "WorkingDir": "/testbed", "User": ""}`.
 */
import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  createSemaphore,
  createSingleFlight,
  RolloutFailure,
  type Semaphore,
  type SingleFlight,
} from '@swefarm/shared';
import { configBeside, EMPTY_CONFIG, type ImageConfig } from '../images/config.ts';
import { withTag } from '../images/names.ts';
import type { ImageStore, StoredImage, Unpack } from '../images/store.ts';
import { requireMountable } from '../namespaces/mounts.ts';
import type { RegistrySource } from '../registry/source.ts';
import type { ReadyImage } from '../runtime.ts';
import type { ImageExporter } from './export.ts';
import { FORMS } from './forms.ts';
import { hostTree } from './hosttree.ts';
import { unpackLayered } from './layered.ts';
import { unpackApart } from './unpack.ts';

export type RootImage = {
  config: ImageConfig;
  lowers: string[];
  /** Folders mounted above the root (`usr`), with their layers. */
  folders: { at: string; lowers: string[] }[];
};

export type RootImageDeps = {
  store: ImageStore;
  engine: ImageExporter | null;
  registry: RegistrySource;
  /** Called with each new tree before the image becomes visible. A rejection fails the unpacking. */
  prepare(image: RootImage): Promise<void>;
};

const UNPACK_AT_ONCE = 2;
/** Time for which a name is not looked up in the engine again. */
const NAME_TRUSTED_MS = 60_000;

export class RootImages {
  readonly #deps: RootImageDeps;
  readonly #unpacking: Semaphore = createSemaphore(UNPACK_AT_ONCE);
  readonly #preparing: SingleFlight<ReadyImage> = createSingleFlight();
  readonly #ready = new Map<string, RootImage>();
  readonly #trusted = new Map<string, { image: ReadyImage; until: number }>();

  constructor(deps: RootImageDeps) {
    this.#deps = deps;
  }

  /** Makes an image ready. Throws RolloutFailure image_not_found / image_pull / node_disk / engine_unreachable. */
  async ensure(name: string, signal: AbortSignal): Promise<ReadyImage> {
    const recent = this.#trusted.get(name);
    if (recent && recent.until > Date.now() && (await this.#deps.store.find(recent.image.digest)))
      return recent.image;
    return await this.#preparing.run(name, () => this.#make(name), signal);
  }

  /** Returns the layers of an image that `ensure` made ready. Throws RolloutFailure image_not_found. */
  layers(image: ReadyImage): RootImage {
    const found = this.#ready.get(image.ref);
    if (!found)
      throw new RolloutFailure('image_not_found', `image ${image.name} was not made ready by this runtime`);
    return found;
  }

  async #make(name: string): Promise<ReadyImage> {
    if (FORMS.test(name)) {
      const form = name.slice(0, name.indexOf(':'));
      const path = name.slice(form.length + 1);
      if (!path.startsWith('/'))
        throw new RolloutFailure('image_not_found', `image ${name}: the path must be absolute`);
      if (form === 'oci') return this.#fromFile(name, { kind: form, ...ociPath(path) });
      if (form === 'docker-archive') return this.#fromFile(name, { kind: form, path });
      return this.#fromFolder(name, path, form === 'host+dir');
    }
    const image = await this.#fromEngine(name);
    this.#trusted.set(name, { image: { ...image, pulled: false }, until: Date.now() + NAME_TRUSTED_MS });
    return image;
  }

  async #fromFile(
    name: string,
    source: { kind: 'oci'; path: string; ref: string | null } | { kind: 'docker-archive'; path: string },
  ): Promise<ReadyImage> {
    const { store } = this.#deps;
    const { kind, path } = source;
    const found = await stat(path).catch(() => null);
    if (!found) throw new RolloutFailure('image_not_found', `image ${name}: there is no ${path}`);
    const ref = kind === 'oci' ? (source.ref ?? '') : '';
    // The key contains the file's identity, because another file under the same name is another image.
    const key = `${kind}:${await realpath(path)}:${ref}:${found.size}:${found.mtimeMs}:${found.ino}`;
    const digest = await store.digestOf(key);
    const present = digest === null ? null : await store.find(digest);
    if (present) return this.#readyFrom(name, present);
    return await this.#unpack(name, key, key, (partial) => unpackApart({ source, partial }));
  }

  async #fromEngine(name: string): Promise<ReadyImage> {
    const { store, engine } = this.#deps;
    const tagged = withTag(name);
    const digest = await store.digestOf(tagged);
    const inspected = (await engine?.inspect(name)) ?? null;
    const wanted = inspected?.digest ?? digest;
    const present = wanted === null ? null : await store.find(wanted);
    if (present) {
      if (present.digest !== digest) await store.name(tagged, present.digest);
      return this.#readyFrom(name, present);
    }
    const image = inspected ?? (await engine?.pull(name)) ?? null;
    if (image && engine)
      return await this.#unpack(name, image.digest, tagged, (partial) => engine.export(name, image, partial));
    return await this.#fromRegistry(name, tagged);
  }

  async #fromRegistry(name: string, storeName: string): Promise<ReadyImage> {
    const { store, registry, prepare } = this.#deps;
    const stored = await registry.open(name, (image) =>
      store.ensure(image.digest, async (partial) => {
        const done = await unpackLayered(this.#deps, image, partial);
        await prepare({ config: done.config, lowers: [join(partial, 'tree')], folders: [] });
        return done;
      }),
    );
    await store.name(storeName, stored.digest);
    return { ...this.#readyFrom(name, stored), pulled: true };
  }

  /** Makes a folder ready, which is used in place. @param hostBelow whether the host's system is the layer below the folder */
  async #fromFolder(name: string, given: string, hostBelow: boolean): Promise<ReadyImage> {
    const path = await realpath(given).catch(() => null);
    const found = path === null ? null : await stat(path);
    if (path === null || !found?.isDirectory()) {
      throw new RolloutFailure('image_not_found', `image ${name}: there is no folder ${given}`);
    }
    requireMountable(path);
    const config = (await configBeside(path)) ?? EMPTY_CONFIG;
    const below = hostBelow ? await hostTree(this.#deps.store) : null;
    const state = `${path} ${found.ino} ${found.mtimeMs} ${JSON.stringify(config)} ${below?.tree}`;
    const digest = `sha256:${hash('sha256', state)}`;
    this.#ready.set(name, {
      config,
      lowers: below ? [path, below.tree] : [path],
      folders: (below?.folders ?? []).map((at) => ({
        at,
        lowers: existsSync(join(path, at)) ? [join(path, at), `/${at}`] : [`/${at}`],
      })),
    });
    return { name, digest, ref: name, ...namedIn(config) };
  }

  async #unpack(name: string, key: string, storeName: string, unpack: Unpack): Promise<ReadyImage> {
    const { store, prepare } = this.#deps;
    const unpackAndPrepare: Unpack = (partial) =>
      this.#unpacking.run(async () => {
        const done = await unpack(partial);
        await prepare({ config: done.config, lowers: [join(partial, 'tree')], folders: [] });
        return done;
      });
    const stored = await store.ensure(key, unpackAndPrepare);
    await store.name(storeName, stored.digest);
    return { ...this.#readyFrom(name, stored), pulled: true };
  }

  #readyFrom(name: string, { digest, config, tree }: StoredImage): ReadyImage {
    this.#ready.set(digest, { config, lowers: [tree], folders: [] });
    return { name, digest, ref: digest, ...namedIn(config) };
  }
}

const namedIn = ({
  user,
  workdir,
  entrypoint,
}: ImageConfig): Pick<ReadyImage, 'user' | 'workdir' | 'entrypoint'> => ({
  ...(user === '' ? {} : { user }),
  ...(workdir === '' ? {} : { workdir }),
  ...(entrypoint ? { entrypoint } : {}),
});

/** Parses `PATH[:REF]`, where the path itself may contain a colon. */
function ociPath(given: string): { path: string; ref: string | null } {
  const at = given.lastIndexOf(':');
  return at < 0 || existsSync(given)
    ? { path: given, ref: null }
    : { path: given.slice(0, at), ref: given.slice(at + 1) };
}
