/** Writes recorded token ids, loss masks and log-probabilities as parquet or safetensors. No text is tokenised. */
import { writeFile } from 'node:fs/promises';
import { jsonText } from '@swefarm/shared';
import { requireNoPictures } from '../../export/conversation.ts';
import { type ExportFormat, type ExportRequest, NotExportable, trajectoryOf } from '../../export/format.ts';
import { openParquetShards } from '../../export/parquetshards.ts';
import type { ExportedRollout } from '../../export/rollout.ts';
import { openShards } from '../../export/shards.ts';
import { segmentsOf, type TokenSequence } from './sequences.ts';

export const tokenShards: ExportFormat = {
  description: 'token ids, loss masks and log-probabilities, in shards',
  forms: ['parquet', 'safetensors'],
  lines: ['all', 'main'],
  shape: 'folder',
  masks: true,
  open: (request) =>
    request.form === 'safetensors'
      ? openShards(request, {
          ending: 'safetensors',
          rowsOf: (rollout) => labelled(rollout, request),
          groupBytes: SHARD_BYTES,
          shardBytes: SHARD_BYTES,
          facts: { tensors: ['offsets', 'input_ids', 'log_probs', 'version_index', 'loss_mask'] },
          create: (path) => ({
            add: (rows) => writeFile(path, safetensorsPieces(rows), { flush: true }),
            end: () => Promise.resolve(),
          }),
        })
      : openParquetShards(request, {
          columns: COLUMNS,
          rowsOf: (rollout) => parquetRows(rollout, request),
          groupBytes: GROUP_BYTES,
          stored: STORED,
        }),
};

const COLUMNS = {
  instance_id: 'text',
  run_id: 'text',
  rollout_id: 'text',
  segment: 'int32',
  line: 'text',
  line_kind: 'text',
  line_from: 'text',
  shared_turns: 'int32',
  line_count: 'int32',
  line_weight: 'double',
  input_ids: ['int32'],
  loss_mask: ['int32'],
  log_probs: ['float'],
  version_index: ['int32'],
  policy_versions: 'text',
  reward: 'double',
  resolved: 'boolean',
  model: 'text',
  agent: 'text',
  policy_version: 'text',
  tag: 'text',
  licence: 'text',
  exit_status: 'text',
  truncated: 'boolean',
  branch_of: { rollout_id: 'text', turn: 'integer' },
  branch_rewards: [{ turn: 'integer', branches: 'integer', rewarded: 'integer', reward_mean: 'double' }],
  trust: 'text',
  software_version: 'text',
  exported_by: 'text',
} as const;

/** Fixed encodings: ids and log-probabilities hardly compress, while masks and versions have long runs of equal values. */
const STORED = {
  input_ids: { encoding: 'PLAIN', codec: 'UNCOMPRESSED' },
  loss_mask: { encoding: 'RLE_DICTIONARY', codec: 'UNCOMPRESSED' },
  log_probs: { encoding: 'PLAIN', codec: 'UNCOMPRESSED' },
  version_index: { encoding: 'RLE_DICTIONARY', codec: 'UNCOMPRESSED' },
} as const;

/** Estimated bytes of a token in memory. */
const TOKEN_BYTES = 13;
/** Bytes of a row group; small, because the encoder needs several numbers in memory for each token. */
const GROUP_BYTES = 1024 ** 2;
/** Bytes of a safetensors file, which is written at once. */
const SHARD_BYTES = 8 * 1024 ** 2 * TOKEN_BYTES;

function labelled(
  rollout: ExportedRollout,
  { lines, maskOverlong }: ExportRequest,
): { rows: LabelledSequence[]; bytes: number } {
  const trajectory = trajectoryOf(rollout, null);
  // Ids of pictures cannot be trained on, because the model server replaces them by embeddings.
  requireNoPictures(trajectory);
  const segments = segmentsOf(trajectory, lines);
  const from = rollout.line.imported?.format;
  if (segments.length === 0) {
    const why =
      from === undefined ? 'ordinary runs store none, see --require-tokens' : `imported from ${from}`;
    throw new NotExportable(`without token ids: ${why}`);
  }
  const { imported: _imported, success: resolved, ...origin } = rollout.provenance;
  const isMasked = maskOverlong && origin.truncated;
  const rows = segments.map(({ sequence, facts }, segment) => ({
    ...sequence,
    ...(isMasked ? { mask: new Uint8Array(sequence.mask.length) } : {}),
    label: { ...origin, resolved, policy_versions: sequence.names, segment, ...facts },
  }));
  return { rows, bytes: rows.reduce((sum, { ids }) => sum + ids.length, 0) * TOKEN_BYTES };
}

function parquetRows(rollout: ExportedRollout, request: ExportRequest) {
  const { rows, bytes } = labelled(rollout, request);
  const columns = rows.map(({ ids, mask, logProbs, versions, names, label }) => ({
    ...label,
    input_ids: ids,
    loss_mask: mask,
    log_probs: logProbs,
    version_index: versions,
    policy_versions: jsonText(names),
  }));
  return { rows: columns, bytes };
}

type LabelledSequence = TokenSequence & { label: Record<string, unknown> };

/**
 * Yields a safetensors file: the length of the header in eight bytes, a JSON header, then the tensors. Sequence i is at `offsets[i]` to
 * `offsets[i + 1]` of each other tensor. The metadata field `rows` has the labels as JSON.
 */
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
