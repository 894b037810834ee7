/** What each format with a mask writes for a rollout that a token limit cut. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArtifactContent } from '@swefarm/shared';
import { bareFacts } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { expect, test } from 'vitest';
import { BRANCHED, trajectoryOfLines } from '../../test/lines.ts';
import { aResult } from '../../test/result.ts';
import { exportedRollout } from '../export/rollout.ts';
import { outputLine } from '../output/line.ts';
import { EXPORT_FORMATS } from './registry.ts';

const trajectory = trajectoryOfLines(BRANCHED);
const content = { trajectory, patch: 'p', report: null, test_log: null } as unknown as ArtifactContent;

/** Exports a rollout whose last answer was cut, or a whole one, with masks of overlong rollouts. */
async function exported(format: string, cut: boolean, maskOverlong = true): Promise<string> {
  const known = EXPORT_FORMATS[format];
  if (!known) throw new Error(`no format ${format}`);
  const result = aResult({ exit_status: 'time_limit', facts: bareFacts({ cut_by_token_limit: cut }) });
  const line = outputLine(result, { patch: 'p', report: null });
  const rollout = exportedRollout({ line, content, sample: 0, instance: null, model: null, exportedBy: 'x' });
  const path = join(temporaryFolder('overlong'), 'out');
  const request = { path, form: known.forms[0] ?? '', samples: 1, lines: 'main' as const, fingerprint: 'x' };
  await using writer = await known.open({ ...request, maskOverlong });
  await writer.write(rollout);
  await writer.finish();
  return path;
}

const rowsIn = async (path: string) =>
  (await readFile(path, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((text) => JSON.parse(text));

test('the formats with masks are those of trainers', () => {
  const masking = Object.entries(EXPORT_FORMATS).flatMap(([name, { masks }]) => (masks ? [name] : []));
  expect(masking).toEqual(['sft-messages', 'nemo-gym', 'tokens']);
});

test.each([
  [true, true, true],
  [true, false, false],
  [false, true, false],
])('cut %s, --mask-overlong %s: masked is %s', async (cut, asked, masked) => {
  const shard = join(await exported('tokens', cut, asked), 'shard-00000.parquet');
  const [row] = await parquetReadObjects({ file: await asyncBufferFromFile(shard) });
  expect(row).toMatchObject({ truncated: cut, reward: 1 });
  expect(((row?.loss_mask ?? []) as number[]).every((one) => one === 0)).toBe(masked);

  const [gym] = await rowsIn(await exported('nemo-gym', cut, asked));
  expect(gym).toMatchObject({
    ...{ reward: 1, truncated: cut, instance_config: { mask_sample: masked } },
    response: { incomplete_details: cut ? { reason: 'max_output_tokens' } : null },
  });
  expect(gym.failure_reason).toBe(masked ? 'overlong: a token limit cut the rollout' : undefined);

  const [sft] = await rowsIn(await exported('sft-messages', cut, asked));
  const answers = sft.messages.filter(({ role }: { role: string }) => role === 'assistant');
  expect(sft.swefarm.truncated).toBe(cut);
  expect(answers.every(({ weight }: { weight?: number }) => weight === 0)).toBe(masked);
});
