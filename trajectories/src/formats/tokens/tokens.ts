/** Writes recorded token ids, loss masks and log-probabilities as parquet or safetensors. No text is tokenised. */
import { writeFile } from 'node:fs/promises';
import { jsonText } from '@swefarm/shared';
import { requireNoPictures } from '../../export/conversation.ts';
import { type ExportFormat, NotExportable, trajectoryOf } from '../../export/format.ts';
import { openParquetShards } from '../../export/parquetshards.ts';
import type { ExportedRollout } from '../../export/rollout.ts';
import { openShards } from '../../export/shards.ts';
import { type LabelledSequence, safetensorsPieces } from './safetensors.ts';
import { sequencesOf } from './sequences.ts';

export const tokenShards: ExportFormat = {
  description: 'token ids, loss masks and log-probabilities, in shards',
  forms: ['parquet', 'safetensors'],
  shape: 'folder',
  open: (request) =>
    request.form === 'safetensors'
      ? openShards(request, {
          ending: 'safetensors',
          rowsOf: labelled,
          groupBytes: SHARD_BYTES,
          shardBytes: SHARD_BYTES,
          facts: { tensors: ['offsets', 'input_ids', 'log_probs', 'loss_mask'] },
          create: (path) => ({
            add: (rows) => writeFile(path, safetensorsPieces(rows), { flush: true }),
            end: () => Promise.resolve(),
          }),
        })
      : openParquetShards(request, {
          columns: COLUMNS,
          rowsOf: parquetRows,
          groupBytes: GROUP_BYTES,
          stored: STORED,
        }),
};

const COLUMNS = {
  instance_id: 'text',
  run_id: 'text',
  rollout_id: 'text',
  segment: 'int32',
  input_ids: ['int32'],
  loss_mask: ['int32'],
  log_probs: ['float'],
  version_index: ['int32'],
  policy_versions: 'text',
  reward: 'double',
  resolved: 'boolean',
  model: 'text',
  policy_version: 'text',
  tag: 'text',
  licence: 'text',
  exit_status: 'text',
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

function labelled(rollout: ExportedRollout): { rows: LabelledSequence[]; bytes: number } {
  const trajectory = trajectoryOf(rollout, null);
  // Ids of pictures cannot be trained on, because the model server replaces them by embeddings.
  requireNoPictures(trajectory);
  const sequences = sequencesOf(trajectory);
  const from = rollout.line.imported?.format;
  if (sequences.length === 0) {
    const why =
      from === undefined ? 'ordinary runs store none, see --require-tokens' : `imported from ${from}`;
    throw new NotExportable(`without token ids: ${why}`);
  }
  const { imported: _imported, success: resolved, ...origin } = rollout.provenance;
  const rows = sequences.map((sequence, segment) => ({
    ...sequence,
    label: { ...origin, resolved, policy_versions: sequence.names, segment },
  }));
  return { rows, bytes: sequences.reduce((sum, { ids }) => sum + ids.length, 0) * TOKEN_BYTES };
}

function parquetRows(rollout: ExportedRollout) {
  const { rows, bytes } = labelled(rollout);
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
