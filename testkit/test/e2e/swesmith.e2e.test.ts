/** Tests SWE-smith from row to reward: the image has no bug, the row adds it, and the agent sees neither the answer nor the tests. */

import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type SmithRow, smithParse } from '../../src/families/smith.ts';
import { writeLines } from '../../src/lines.ts';
import { openScene } from './scene.ts';
import { answersIn, looksFor, observed, smithRollouts } from './smithfarm.ts';

describe("an example in SWE-smith's form, with its branch in the image and without", () => {
  const scene = openScene();
  const run = { scene, dataset: join(scene.folder, 'rows.jsonl'), runtime: 'rootfs' };
  let rows: SmithRow[];
  beforeAll(async () => {
    rows = await smithParse(scene.folder, 'rootfs', ['absent', 'tests removed']);
    await writeLines(run.dataset, rows);
  });

  test('gold resolves it, an empty patch does not', async () => {
    const golden = await smithRollouts(run, 'golden');
    expect(golden).toMatchObject(
      rows.map(() => ({
        resolved: true,
        reward: 1,
        report: { grader: 'swesmith-9b74ac0', parser: 'python-pytest-v', trust: { level: 'clean' } },
      })),
    );
    const noop = await smithRollouts(run, 'noop');
    expect(noop).toMatchObject(rows.map(() => ({ resolved: false, reward: 0 })));
  });

  test('an agent finds neither the tests nor the code without the bug', async () => {
    const [first] = rows;
    if (!first) throw new Error('there are no rows');
    const seen = await observed(run, looksFor(first));
    for (const row of rows) expect(answersIn(seen.get(row.instance_id) ?? '', row)).toEqual([]);
  });
});
