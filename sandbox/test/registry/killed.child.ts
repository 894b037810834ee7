/** A process that pulls an image into a store until it is killed. Arguments: folder of images, name of the image. */
import { join } from 'node:path';
import { createFetch } from '../../src/images/fetch.ts';
import { openImageStore } from '../../src/images/store.ts';
import { RegistrySource } from '../../src/registry/source.ts';
import { RootImages } from '../../src/rootfs/images.ts';

const [imagesDir = '', name = ''] = process.argv.slice(2);
const store = await openImageStore(imagesDir);
const folder = join(store.root, 'blobs');
const registry = new RegistrySource({
  ca: null,
  plainHttp: [],
  blobsDir: null,
  folder,
  fetch: createFetch(),
});
const images = new RootImages({ store, engine: null, registry, prepare: async () => undefined });
await images.ensure(name, new AbortController().signal);
