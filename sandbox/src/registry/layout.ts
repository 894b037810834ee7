/** Writes an image of a registry as an OCI layout, which Apptainer and other tools read. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256 } from '../images/manifest.ts';
import { requireDisk } from '../images/store.ts';
import { digestOfFile } from './blobs.ts';
import type { RemoteLayer } from './remoteimage.ts';
import type { OpenImage } from './source.ts';

/**
 * Fetches all layers, and writes the layout to the folder `path`, whose blobs are links to the files of the store, or copies on another file
 * system. Throws RolloutFailure node_disk and the errors of `layer`.
 */
export async function writeLayout(path: string, image: OpenImage): Promise<void> {
  const { manifest, mediaType, config } = image.documents;
  const blobs = join(path, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  const fileOf = (digest: string): string => join(blobs, digest.slice('sha256:'.length));
  const layers = new Map(image.layers.map((layer) => [layer.digest, layer]));
  await requireDisk(
    path,
    [...layers.values()].reduce((sum, { size }) => sum + size, 0),
  );
  await Promise.all([...layers.values()].map((layer) => writeLayer(image, layer, blobs)));
  for (const document of [manifest, config]) await writeFile(fileOf(sha256(document)), document);
  const manifests = [{ mediaType, digest: sha256(manifest), size: manifest.length }];
  await writeFile(join(path, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
  await writeFile(join(path, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
}

/** Writes a checked blob, because the store may have damaged ones and Apptainer does not fetch again. */
async function writeLayer(image: OpenImage, layer: RemoteLayer, blobs: string): Promise<void> {
  const path = await image.layer(layer, blobs);
  if ((await digestOfFile(path)) === layer.digest) return;
  await rm(path);
  await image.dropDamaged(layer);
  await image.layer(layer, blobs);
}
