/** Tests that the choice of one rollout for each instance does not depend on the order in which rollouts ended. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { expect, test } from 'vitest';
import { linesOf, run } from './cli.ts';
import { aPatch, storeRollouts } from './stored.ts';

/** Stores four rollouts of each of 40 instances. Index 0 ends last. */
async function prepare() {
  const folder = await testFolder();
  const rollouts = Array.from({ length: 40 }, (_, at) => `a__b-${at}`).flatMap((instance_id) =>
    [3, 2, 1, 0].map((rollout_index) => ({
      over: { instance_id, rollout_index, rollout_id: `r1.${instance_id}.${rollout_index}` },
      patch: aPatch(String(rollout_index)),
    })),
  );
  const results = await storeRollouts(folder, rollouts);
  const other = join(folder, 'other.jsonl');
  const lines = (await readFile(results, 'utf8')).trim().split('\n');
  await writeFile(other, `${lines.toReversed().join('\n')}\n`);
  return { folder, results, other, ids: rollouts.map(({ over }) => over) };
}

test('--per-instance 1 takes the first by index, in whatever order they ended', async () => {
  const { folder, results, other } = await prepare();
  for (const [name, file] of Object.entries({ results, other })) {
    const out = join(folder, `${name}.preds.jsonl`);
    const ran = await run(['export', file, '--format', 'preds', '--per-instance', '1', '--out', out]);
    expect(ran.code).toBe(0);
    expect((await linesOf(out)).map((line) => line.model_patch)).toEqual(Array(40).fill(aPatch('0')));
  }
});

test('select draws among equal scores, the same ones in whatever order they ended', async () => {
  const { folder, results, other, ids } = await prepare();
  const scores = join(folder, 'scores.jsonl');
  const lines = ids.map(({ rollout_id, instance_id, rollout_index }) => ({
    ...{ rollout_id, instance_id, verifier: 'v' },
    score: rollout_index === 3 ? 0.2 : 0.5,
  }));
  await writeFile(scores, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const chosen: number[][] = [];
  for (const [name, file] of Object.entries({ results, other })) {
    const output = join(folder, `${name}.best.jsonl`);
    const ran = await run(['select', file, '--scores', scores, '--output', output]);
    expect(ran.code).toBe(0);
    const best = (await linesOf(output)).toSorted((a, b) =>
      String(a.instance_id) < String(b.instance_id) ? -1 : 1,
    );
    chosen.push(best.map((line) => Number(line.rollout_index)));
  }
  expect(chosen[0]).toEqual(chosen[1]);
  // Each of the three rollouts with equal scores is drawn, and the one with a lower score never.
  expect([...new Set(chosen[0])].toSorted()).toEqual([0, 1, 2]);
});
