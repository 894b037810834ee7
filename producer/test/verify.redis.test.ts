import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { lines, row } from '@swefarm/datasets/test/rows.ts';
import { until, words } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { exited, fakeWorker, linesOf, run, start } from './cli.ts';
import { flaskId, flaskRows } from './scene.ts';

async function prepare(times: number) {
  const scene = await flaskRows(3);
  const output = scene.at('clean.jsonl');
  const args = words`
    dataset verify --dataset ${scene.dataset} --times ${times} --output ${output}
    --state-dir ${scene.state} --worker-command ${fakeWorker('examine')}`;
  return { ...scene, output, args };
}

test('rows that verify three times are written unchanged; the others are named with a reason', async () => {
  const { at, dataset, args, output } = await prepare(3);
  const rows = [
    ...[0, 1, 2].map((index) => row({ instance_id: flaskId(index), extra: 1 })),
    row({ instance_id: flaskId(3), patch: '' }),
  ];
  await writeFile(dataset, lines(...rows));
  const ran = await run(args);
  expect(ran).toMatchObject(exited(10, /1 of 4 rows are clean/));
  expect(await readFile(output, 'utf8')).toBe(lines(rows[0]));
  const found = (await linesOf(at('clean.findings.jsonl'))) as Record<string, unknown>[];
  expect(found).toEqual([
    { instance_id: 'pallets__flask-0', clean: true, why: null, flaky: [], times: 3 },
    expect.objectContaining({ clean: false, why: 'gold is not always resolved (flaky: t)', flaky: ['t'] }),
    expect.objectContaining({ clean: false, why: 'the untouched tree is resolved already', flaky: ['t'] }),
    expect.objectContaining({ clean: false, why: 'it withholds its gold patch' }),
  ]);
});

test('a file that changes while it is verified is not taken for the one that was evaluated', async () => {
  const { at, ids, dataset, args, output } = await prepare(1);
  const running = start(args);
  // The command makes the folder of the run after it has read the dataset.
  await until(() => existsSync(at('state/runs')));
  const changed = ids.map((instance_id, index) =>
    row({ instance_id, ...(index === 0 ? { base_commit: 'another' } : {}) }),
  );
  await writeFile(dataset, lines(...changed));
  expect(await running.ended).toMatchObject(
    exited(2, /line 1 is not the row that was evaluated: the file changed/),
  );
  expect(existsSync(output)).toBe(false);
});
