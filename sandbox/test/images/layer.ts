/** Makes layers from entries: a path and its content. */
import { buffer } from 'node:stream/consumers';
import tar, { type Header } from 'tar-stream';

export type LayerEntry = { name: string; content?: string } & Omit<Partial<Header>, 'name'>;

export async function layerOf(entries: readonly LayerEntry[]): Promise<Buffer> {
  const pack = tar.pack();
  for (const { content, ...header } of entries) pack.entry(header, content ?? '');
  pack.finalize();
  return buffer(pack);
}
