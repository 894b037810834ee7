/** Writes recorded token ids, loss masks and log-probabilities as parquet or safetensors. No text is tokenised. */
import { open } from 'node:fs/promises';
import { jsonText } from '@swefarm/shared';
import { SHOWS_PICTURES, showsPictures } from '../../export/conversation.ts';
import {
  type ExportFormat,
  type ExportRequest,
  type ExportWriter,
  NO_TRAJECTORY,
} from '../../export/format.ts';
import { openParquetShards } from '../../export/parquetshards.ts';
import type { ExportedRollout } from '../../export/rollout.ts';
import { openShards } from '../../export/shards.ts';
import { writing } from '../../output/appendfile.ts';
import { type LabelledSequence, safetensorsPieces } from './safetensors.ts';
import { sequencesOf } from './sequences.ts';

export const tokenShards: ExportFormat = {
  description: 'token ids, loss masks and log-probabilities, in shards',
  forms: ['parquet', 'safetensors'],
  shape: 'folder',
  open: (request) =>
    request.form === 'safetensors'
      ? openSafetensors(request)
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
const SHARD_TOKENS = 8 * 1024 ** 2;

function labelled(rollout: ExportedRollout): LabelledSequence[] | { skipped: string } {
  const trajectory = rollout.content?.trajectory;
  if (!trajectory) return { skipped: NO_TRAJECTORY };
  // Ids of pictures cannot be trained on, because the model server replaces them by embeddings.
  if (showsPictures(trajectory)) return { skipped: SHOWS_PICTURES };
  const sequences = sequencesOf(trajectory);
  const from = rollout.line.imported?.format;
  if (sequences.length === 0) {
    const why =
      from === undefined ? 'ordinary runs store none, see --require-tokens' : `imported from ${from}`;
    return { skipped: `without token ids: ${why}` };
  }
  const { imported: _imported, success: resolved, ...origin } = rollout.provenance;
  const label = { ...origin, resolved };
  return sequences.map((sequence, segment) => ({
    ...sequence,
    label: { ...label, policy_versions: sequence.names, segment },
  }));
}

function parquetRows(rollout: ExportedRollout) {
  const found = labelled(rollout);
  if ('skipped' in found) return found;
  const rows = found.map(({ ids, mask, logProbs, versions, label }) => ({
    ...label,
    input_ids: ids,
    loss_mask: mask,
    log_probs: logProbs,
    version_index: versions,
    policy_versions: jsonText(label.policy_versions),
  }));
  return { rows, bytes: found.reduce((sum, { ids }) => sum + ids.length, 0) * TOKEN_BYTES };
}

async function openSafetensors(request: ExportRequest): Promise<ExportWriter> {
  const shards = await openShards(request, 'safetensors');
  let rows: LabelledSequence[] = [];
  let rollouts: string[] = [];
  let tokens = 0;
  const endShard = async (): Promise<void> => {
    if (rollouts.length === 0) return;
    await writing(request.path, async () => {
      await using file = await open(shards.next(), 'w');
      for (const piece of safetensorsPieces(rows)) await file.appendFile(piece);
      await file.datasync();
    });
    await shards.add(rows.length, rollouts);
    rows = [];
    rollouts = [];
    tokens = 0;
  };
  return {
    written: shards.written,
    async write(rollout) {
      const found = labelled(rollout);
      if ('skipped' in found) return found.skipped;
      rows.push(...found);
      rollouts.push(rollout.line.rollout_id);
      tokens += found.reduce((sum, { ids }) => sum + ids.length, 0);
      if (tokens >= SHARD_TOKENS) await endShard();
      return null;
    },
    async finish() {
      await endShard();
      await shards.finish({ tensors: ['offsets', 'input_ids', 'log_probs', 'loss_mask'] });
    },
    [Symbol.asyncDispose]: () => shards[Symbol.asyncDispose](),
  };
}
