import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { row } from '@swefarm/datasets/test/rows.ts';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { until } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { fakeWorker, linesOf, run, start } from './cli.ts';

test('rows whose gold and untouched tree hold three times are written unchanged; the others are named with the reason', async () => {
  const folder = await testFolder();
  const dataset = join(folder, 'rows.jsonl');
  const rows = [
    ...[0, 1, 2].map((at) => row({ instance_id: `pallets__flask-${at}`, extra: 1 })),
    row({ instance_id: 'pallets__flask-3', patch: '' }),
  ].map((one) => JSON.stringify(one));
  await writeFile(dataset, `${rows.join('\n')}\n`);
  const output = join(folder, 'clean.jsonl');
  const ran = await run([
    ...['dataset', 'verify', '--dataset', dataset, '--times', '3', '--output', output],
    ...['--state-dir', join(folder, 'state'), '--worker-command', fakeWorker('examine')],
  ]);
  expect(ran).toMatchObject({ code: 10, stderr: expect.stringMatching(/1 of 4 rows are clean/) });
  expect(await readFile(output, 'utf8')).toBe(`${rows[0]}\n`);
  const found = (await linesOf(join(folder, 'clean.findings.jsonl'))) as Record<string, unknown>[];
  expect(found).toEqual([
    { instance_id: 'pallets__flask-0', clean: true, why: null, flaky: [], times: 3 },
    expect.objectContaining({ clean: false, why: 'gold is not always resolved (flaky: t)', flaky: ['t'] }),
    expect.objectContaining({ clean: false, why: 'the untouched tree is resolved already', flaky: ['t'] }),
    expect.objectContaining({ clean: false, why: 'it withholds its gold patch' }),
  ]);
});

test('a file that changes while it is verified is not taken for the one that was evaluated', async () => {
  const folder = await testFolder();
  const dataset = join(folder, 'rows.jsonl');
  const rows = [0, 1, 2].map((at) => row({ instance_id: `pallets__flask-${at}` }));
  await writeFile(dataset, rows.map((one) => `${JSON.stringify(one)}\n`).join(''));
  const output = join(folder, 'clean.jsonl');
  const running = start([
    ...['dataset', 'verify', '--dataset', dataset, '--times', '1', '--output', output],
    ...['--state-dir', join(folder, 'state'), '--worker-command', fakeWorker('examine')],
  ]);
  // The run's folder is made once the dataset is read.
  await until(() => existsSync(join(folder, 'state', 'runs')));
  const [first = {}, ...others] = rows;
  const changed = [{ ...first, base_commit: 'another' }, ...others];
  await writeFile(dataset, changed.map((one) => `${JSON.stringify(one)}\n`).join(''));
  expect(await running.ended).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/line 1 is not the row that was evaluated: the file changed/),
  });
  expect(existsSync(output)).toBe(false);
});
