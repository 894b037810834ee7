/** Tests the verdicts in exports of forged and unrewarded rollouts. */
import { readFile } from 'node:fs/promises';
import { bareFacts } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { storedRollouts } from './stored.ts';

test('exports carry a forged rollout as no success, and its official verdict in its origin', async () => {
  const stored = await storedRollouts([
    {},
    {
      over: { instance_id: 'a__f-1', reward: 0, reward_row: 'forged', facts: bareFacts({ trust: 'forged' }) },
    },
    { over: { instance_id: 'a__m-1', reward: null, reward_row: 'policy_time' } },
  ]);
  const exported = async (format: string) => {
    const { path, stderr } = await stored.exported(format, `${format}.jsonl`);
    const rows = (await readFile(path, 'utf8')).trim().split('\n');
    return { stderr, rows: rows.map((text) => JSON.parse(text)) };
  };
  const sft = await exported('sft-messages');
  expect(sft.rows.map(({ resolved }) => resolved)).toEqual([true, false, false]);
  expect(sft.rows.map(({ swefarm }) => swefarm.resolved)).toEqual([true, true, true]);
  const verifier = await exported('verifier');
  expect(verifier.rows.map(({ instance_id, success }) => [instance_id, success])).toEqual([
    [sft.rows[0].instance_id, 1],
    ['a__f-1', 0],
  ]);
  expect(verifier.stderr).toContain('1 without a reward');
  const { rows } = await exported('openhands');
  expect(rows.map(({ test_result }) => test_result.report.resolved)).toEqual([true, false, false]);
});
