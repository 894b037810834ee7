/** Reads images on disk: docker-archive files (`docker save`) and OCI layouts. */
import { createHash, hash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Duplex, PassThrough, type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import tar from 'tar-stream';
import { z } from 'zod';
import { type ImageConfig, readConfig } from './config.ts';
import { Configuration, type Descriptor, forThisMachine, Index, Manifest, sha256 } from './manifest.ts';
import { cutFrames, isZstd } from './zstdframes.ts';

export type LayeredImage = {
  /** Digest of the configuration, which is the engines' image id. */
  digest: string;
  config: ImageConfig;
  /** Functions that open the decompressed layers, the lowest first. Layers of an OCI layout are checked against their digests. */
  layers: (() => Promise<Readable>)[];
};

const DockerManifest = z.array(z.object({ Config: z.string(), Layers: z.array(z.string()) }));

/** Decompresses a stream according to its first bytes, because names and media types can be wrong. */
export async function unpacked(source: Readable): Promise<Readable> {
  const first = await new Promise<Buffer>((resolve, reject) => {
    source.once('error', reject);
    source.once('readable', () => {
      source.off('error', reject);
      resolve((source.read() as Buffer | null) ?? Buffer.alloc(0));
    });
  });
  if (first.length > 0) source.unshift(first);
  const magic = first.toString('hex', 0, 4);
  if (isZstd(magic)) return through(through(source, cutFrames()), createZstdDecompress());
  return through(source, magic.startsWith('1f8b') ? createGunzip() : new PassThrough());
}

/** Pipes a stream into another one, with its errors. */
function through<T extends Duplex>(source: Readable, target: T): T {
  source.once('error', (error) => target.destroy(error));
  return source.pipe(target);
}

/** Opens a layer in a file, decompressed. The stream fails at its end if the decompressed layer has another digest. */
export async function openLayer(path: string, diffId: string): Promise<Readable> {
  return through(await unpacked(createReadStream(path)), verifying(diffId));
}

/** Returns a stream that passes its input, and fails at the end if the input has another digest. */
function verifying(digest: string): Transform {
  const hash = createHash('sha256');
  return new Transform({
    transform(chunk, _encoding, done) {
      hash.update(chunk as Buffer);
      done(null, chunk);
    },
    flush(done) {
      const found = `sha256:${hash.digest('hex')}`;
      done(found === digest ? null : new Error(`a layer has digest ${found}, not ${digest}`));
    },
  });
}

/**
 * Reads a file of `docker save`, plain or compressed. The entries have no useful order, so they are first written to the folder
 * `spool`, which the caller removes. Throws for any other file.
 */
export async function readDockerArchive(path: string, spool: string): Promise<LayeredImage> {
  await mkdir(spool, { recursive: true });
  const pathOf = (name: string): string => join(spool, hash('sha256', name));
  const links = new Map<string, string>();
  const extract = tar.extract();
  const archive = await unpacked(createReadStream(path));
  archive.once('error', (error) => extract.destroy(error));
  archive.pipe(extract);
  for await (const entry of extract) {
    const { name, type, linkname } = entry.header;
    if (type === 'file') await pipeline(entry, createWriteStream(pathOf(name)));
    else if (type === 'symlink' || type === 'link') {
      links.set(name, join(type === 'symlink' ? join(name, '..') : '', linkname ?? ''));
    }
    entry.resume();
  }
  const find = (name: string): string => pathOf(links.get(name) ?? name);
  if (!existsSync(pathOf('manifest.json')))
    throw new Error(`${path} has no manifest.json: it is no docker-archive`);
  const manifest = DockerManifest.parse(JSON.parse(readFileSync(pathOf('manifest.json'), 'utf8')))[0];
  if (!manifest) throw new Error(`${path} contains no image`);
  const config = readFileSync(find(manifest.Config));
  return {
    digest: sha256(config),
    config: readConfig(Configuration.parse(JSON.parse(config.toString())).config),
    layers: manifest.Layers.map((layer) => () => unpacked(createReadStream(find(layer)))),
  };
}

/** Reads a folder in OCI layout; `ref` selects one of several images by `org.opencontainers.image.ref.name`. */
export function readOciLayout(path: string, ref: string | null): LayeredImage {
  const blob = ({ digest }: Descriptor): string =>
    join(path, 'blobs', 'sha256', digest.slice('sha256:'.length));
  const json = (descriptor: Descriptor): unknown => {
    const bytes = readFileSync(blob(descriptor));
    if (sha256(bytes) !== descriptor.digest) throw new Error(`blob ${descriptor.digest} is damaged`);
    return JSON.parse(bytes.toString());
  };
  let { manifests } = Index.parse(JSON.parse(readFileSync(join(path, 'index.json'), 'utf8')));
  if (ref !== null) {
    manifests = manifests.filter((one) => one.annotations?.['org.opencontainers.image.ref.name'] === ref);
  }
  for (let depth = 0; depth < 4; depth++) {
    const chosen = forThisMachine(manifests);
    if (!chosen)
      throw new Error(`${path} has no image for this machine${ref === null ? '' : ` named ${ref}`}`);
    const document = json(chosen);
    const nested = Index.safeParse(document);
    if (nested.success) {
      manifests = nested.data.manifests;
      continue;
    }
    const manifest = Manifest.parse(document);
    return {
      digest: manifest.config.digest,
      config: readConfig(Configuration.parse(json(manifest.config)).config),
      layers: manifest.layers.map((layer) => () => {
        return unpacked(through(createReadStream(blob(layer)), verifying(layer.digest)));
      }),
    };
  }
  throw new Error(`${path}: index within index within index`);
}
