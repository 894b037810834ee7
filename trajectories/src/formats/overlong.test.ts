/** What each format with a mask writes for a rollout that a token limit cut. */
import { join } from 'node:path';
import { bareFacts } from '@swefarm/testkit';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { expect, test } from 'vitest';
import { exportedFile, rowsIn } from '../../test/exportedfile.ts';
import { aResult } from '../../test/result.ts';
import { EXPORT_FORMATS } from './registry.ts';

/** Exports a rollout whose last answer was cut, or a whole one, with masks of overlong rollouts. */
function exported(format: string, cut: boolean, maskOverlong = true): Promise<string> {
  const result = aResult({ exit_status: 'time_limit', facts: bareFacts({ cut_by_token_limit: cut }) });
  return exportedFile(format, result, { lines: 'main', maskOverlong });
}

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
