/** SWE-smith from a row to a reward: the image has no bug, the row makes it, and the agent sees neither the answer nor the tests. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SmithRow, smithParse } from '../../src/families/smith.ts';
import { answersIn, looksFor, openSmithFarm, type SmithFarm } from './smithfarm.ts';

describe("an example in SWE-smith's form, with its branch in the image and without", () => {
  let farm: SmithFarm;
  let rows: SmithRow[];
  let dataset: string;
  beforeAll(async () => {
    farm = await openSmithFarm();
    rows = await smithParse(farm.folder, 'rootfs', ['absent', 'tests removed']);
    dataset = await farm.write('rows.jsonl', rows);
  });
  afterAll(() => farm[Symbol.asyncDispose]());

  test('gold resolves it, nothing does not', async () => {
    const golden = await farm.rollouts(dataset, 'rootfs', 'golden', ['--agent', 'golden']);
    expect(golden).toMatchObject(
      rows.map(() => ({
        resolved: true,
        reward: 1,
        report: { grader: 'swesmith-9b74ac0', parser: 'python-pytest-v', trust: { level: 'clean' } },
      })),
    );
    const noop = await farm.rollouts(dataset, 'rootfs', 'noop', ['--agent', 'noop']);
    expect(noop).toMatchObject(rows.map(() => ({ resolved: false, reward: 0 })));
  });

  test('an agent finds neither the tests nor the code without the bug', async () => {
    const [first] = rows;
    if (!first) throw new Error('there are no rows');
    const seen = await farm.observed(dataset, 'rootfs', looksFor(first));
    for (const row of rows) expect(answersIn(seen.get(row.instance_id) ?? '', row)).toEqual([]);
  });
});
