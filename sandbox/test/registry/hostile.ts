/** A registry on the loopback whose documents and answers a test writes, and a node that pulls from it. */
import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { createFetch } from '../../src/images/fetch.ts';
import { openImageStore } from '../../src/images/store.ts';
import { RegistrySource } from '../../src/registry/source.ts';
import { RootImages } from '../../src/rootfs/images.ts';
import { NEVER } from '../subject.ts';

export const digestOf = (bytes: Uint8Array | string): string => `sha256:${hash('sha256', bytes)}`;

/** @param answer answers a request itself if it returns true */
export async function startHostile(
  answer: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
) {
  const documents = new Map<string, Buffer>();
  const origin = await listening((request, response) => {
    if (answer(request, response)) return;
    const found = documents.get(/[^/]+$/.exec(request.url ?? '')?.[0] ?? '');
    response.writeHead(found ? 200 : 404).end(found ?? '{}');
  });
  const { host } = new URL(origin);
  return {
    host,
    /** Returns the name of a new image. @param diffIds default: the digests of the layers */
    image(tag: string, layers: readonly Buffer[], diffIds: readonly string[] = layers.map(digestOf)) {
      const described = layers.map((tar) => {
        const blob = gzipSync(tar);
        documents.set(digestOf(blob), blob);
        return {
          mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
          digest: digestOf(blob),
          size: blob.length,
        };
      });
      const config = Buffer.from(JSON.stringify({ config: {}, rootfs: { diff_ids: diffIds }, tag }));
      const digest = digestOf(config);
      documents.set(digest, config);
      documents.set(tag, Buffer.from(JSON.stringify({ config: { digest }, layers: described })));
      return { name: `${host}/a/b:${tag}`, digest, layers: described };
    },
  };
}

/** One node: its store of images, and what a worker on it does. */
export async function aNode(blobsDir: string | null = null) {
  const store = await openImageStore(temporaryFolder('node'));
  const registry = new RegistrySource({
    ...{ ca: null, plainHttp: [], blobsDir, folder: join(store.root, 'blobs') },
    fetch: createFetch({ atOnce: 3, mirrors: [] }),
  });
  const images = new RootImages({ store, engine: null, registry, prepare: async () => undefined });
  const treeOf = async (name: string): Promise<string> =>
    images.layers(await images.ensure(name, NEVER)).lowers[0] ?? '';
  return { store, registry, treeOf };
}
