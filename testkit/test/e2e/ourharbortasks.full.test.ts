/** Tasks of `swefarm dataset to-harbor` run on the farm: their verifier is separate, and a hook collects the patch. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeRows } from '../../clients/harbor/rows.ts';
import { readLines, runCommand, writeLines } from '../../src/index.ts';
import { temporaryFolder } from '../temporaryfolder.ts';

test('our tasks have the reward 1 with the gold patch, and 0 with no work', {
  timeout: 3_600_000,
}, async () => {
  const folder = temporaryFolder('ourtasks');
  const at = (name: string): string => join(folder, name);
  const farm = { SWEFARM_STATE_DIR: at('state'), SWEFARM_SCRATCH_DIR: at('scratch') };
  const swefarm = async (...args: string[]): Promise<void> => {
    const { code, stderr } = await runCommand('swefarm', args, farm);
    expect(code, stderr.slice(-2000)).toBe(0);
  };
  await using rows = await makeRows(at('rows'));
  await writeLines(at('rows.jsonl'), rows.auto);
  await swefarm('dataset', 'to-harbor', '--dataset', at('rows.jsonl'), '--output-dir', at('tasks'));
  for (const [agent, reward] of [
    ['golden', 1],
    ['noop', 0],
  ] as const) {
    const output = at(`${agent}.jsonl`);
    await swefarm(
      'rollout',
      '--dataset',
      at('tasks'),
      '--agent',
      agent,
      '--runtime',
      'docker',
      '--output',
      output,
    );
    const lines = await readLines<{ instance_id: string; reward: number | null }>(output);
    expect(lines).toHaveLength(rows.auto.length);
    expect(lines.filter((line) => line.reward !== reward)).toEqual([]);
  }
});
