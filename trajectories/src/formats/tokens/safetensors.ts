/** Encodes sequences as a safetensors file: the length of the header in eight bytes, a JSON header, then the tensors. */
import { jsonText } from '@swefarm/shared';
import type { TokenSequence } from './sequences.ts';

export type LabelledSequence = TokenSequence & { label: Record<string, unknown> };

/** Yields a file. Sequence i is at `offsets[i]` to `offsets[i + 1]` of each tensor. The metadata field `rows` has the labels as JSON. */
export function* safetensorsPieces(rows: readonly LabelledSequence[]): Generator<Uint8Array> {
  const total = rows.reduce((sum, { ids }) => sum + ids.length, 0);
  const offsets = new BigInt64Array(rows.length + 1);
  for (const [at, { ids }] of rows.entries()) offsets[at + 1] = (offsets[at] ?? 0n) + BigInt(ids.length);
  // In this order, each tensor begins at a multiple of the size of its elements.
  const tensors = [
    ['offsets', 'I64', rows.length + 1, 8],
    ['input_ids', 'I32', total, 4],
    ['log_probs', 'F32', total, 4],
    ['version_index', 'I32', total, 4],
    ['loss_mask', 'U8', total, 1],
  ] as const;
  const metadata = { format: 'swefarm-tokens-1', rows: jsonText(rows.map(({ label }) => label)) };
  const header: Record<string, unknown> = { __metadata__: metadata };
  let at = 0;
  for (const [name, dtype, length, bytes] of tensors) {
    header[name] = { dtype, shape: [length], data_offsets: [at, at + length * bytes] };
    at += length * bytes;
  }
  const text = Buffer.from(jsonText(header));
  const padded = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, ' ')]);
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(padded.length));
  yield size;
  yield padded;
  yield bytesOf(offsets);
  for (const { ids } of rows) yield bytesOf(ids);
  for (const { logProbs } of rows) yield bytesOf(logProbs);
  for (const { versions } of rows) yield bytesOf(versions);
  for (const { mask } of rows) yield mask;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
