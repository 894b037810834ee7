/** Writes an image of a registry as an OCI layout, which Apptainer and other tools read. */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256 } from '../images/manifest.ts';
import type { OpenImage } from './source.ts';

/**
 * Fetches all layers, and writes the layout to the folder `path`, whose blobs are links to the files of the store. Throws the errors of
 * `layer`.
 */
export async function writeLayout(path: string, image: OpenImage): Promise<void> {
  const { manifest, mediaType, config } = image.documents;
  const blobs = join(path, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  const fileOf = (digest: string): string => join(blobs, digest.slice('sha256:'.length));
  const layers = new Map(image.layers.map((layer) => [layer.digest, layer]));
  await Promise.all(
    [...layers.values()].map(async (layer) => symlink(await image.layer(layer), fileOf(layer.digest))),
  );
  for (const document of [manifest, config]) await writeFile(fileOf(sha256(document)), document);
  const manifests = [{ mediaType, digest: sha256(manifest), size: manifest.length }];
  await writeFile(join(path, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
  await writeFile(join(path, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
}
