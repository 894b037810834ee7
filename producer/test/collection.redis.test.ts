/** Collections by `swefarm rollout`: its own process, its own Redis, a worker by its command. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lines, row } from '../src/datasets/rows.fixture.ts';
import { fakeWorker, linesOf, run } from './cli.ts';
import { testFolder } from './farm.ts';

async function place() {
  const folder = await testFolder();
  const dataset = join(folder, 'rows.jsonl');
  const output = join(folder, 'out.jsonl');
  await writeFile(dataset, lines(...[0, 1].map((at) => row({ instance_id: `pallets__flask-${at}` }))));
  const prices = join(folder, 'prices.yaml');
  await writeFile(prices, 'm: {prompt: 1000000, completion: 0}\n');
  const args = (mode: string, ...more: string[]) => [
    ...['rollout', '--dataset', dataset, '--output', output, '--state-dir', join(folder, 'state')],
    ...[
      '--policy-url',
      'http://127.0.0.1:9/v1',
      '--model',
      'm',
      '--worker-command',
      fakeWorker(mode),
      ...more,
    ],
  ];
  const rolloutsOf = async (path = output) =>
    (await linesOf(path)).map(({ rollout_id: id }) => id.split('.').slice(1).join('.')).toSorted();
  return { folder, output, prices, args, rolloutsOf };
}

test('rollouts of an instance run until enough are resolved, and no further', async () => {
  const { args, rolloutsOf } = await place();
  const ran = await run(args('fail', '--until-resolved', '1', '--max-rollouts', '5'));
  // Index 0 fails, 1 is not resolved, 2 is.
  expect(await rolloutsOf()).toEqual(
    [0, 1].flatMap((at) => [0, 1, 2].map((index) => `pallets__flask-${at}.${index}`)),
  );
  expect(ran.code).toBe(10);
  expect(ran.stderr).toMatch(/4 of 6 rollouts judged, 2 resolved/);
});

test('sets are runs of their own, with their tag in lines and file names; a second call resumes them', async () => {
  const { folder, args, prices } = await place();
  const sets = ['--set', 't05:temperature=0.5,n=1', '--set', 't10:temperature=1,n=2', '--prices', prices];
  const ran = await run(args('ok', ...sets));
  expect(ran.code).toBe(0);
  const half = await linesOf(join(folder, 'out.t05.jsonl'));
  const whole = await linesOf(join(folder, 'out.t10.jsonl'));
  expect([half.length, whole.length]).toEqual([2, 4]);
  expect(new Set(half.map(({ tag }) => tag))).toEqual(new Set(['t05']));
  for (const { tokens, cost } of half) expect(cost).toBe((tokens as { prompt: number }).prompt);
  expect((await run(args('ok', ...sets))).code).toBe(2);
  expect(await run(args('ok', ...sets, '--resume'))).toMatchObject({ code: 0 });
  expect(await linesOf(join(folder, 'out.t05.jsonl'))).toEqual(half);
  expect(existsSync(join(folder, 'out.jsonl'))).toBe(false);
});

test('a budget ends the queueing; --resume with a larger one goes on', async () => {
  const { args, rolloutsOf } = await place();
  const budget = ['--group-size', '4', '--budget-tokens', '1', '--in-flight', '2'];
  const ran = await run(args('ok', ...budget));
  expect(ran.code).toBe(10);
  expect(ran.stderr).toMatch(/stopped: \d+ of 1 tokens are spent; with a larger budget, continue with/);
  expect((await rolloutsOf()).length).toBeLessThanOrEqual(3);
  const more = await run(args('ok', '--group-size', '4', '--budget-tokens', '1000000', '--resume'));
  expect(more.code).toBe(0);
  expect(await rolloutsOf()).toHaveLength(8);
});

test('only the failures of an output run again, and a report counts each rollout once', async () => {
  const { folder, output, args, rolloutsOf } = await place();
  expect((await run(args('fail', '--group-size', '2'))).code).toBe(10);
  const mended = join(folder, 'again.jsonl');
  const wrong = await run([...args('ok'), '--again', output, '--only-failures', 'bug', '--output', mended]);
  expect(wrong).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/its failures are policy_unreachable/),
  });
  const ran = await run([
    ...args('ok'),
    ...['--again', output, '--only-failures', 'policy_unreachable', '--output', mended],
  ]);
  expect(ran.code).toBe(0);
  expect(await rolloutsOf(mended)).toEqual(['pallets__flask-0.0', 'pallets__flask-1.0']);
  const failed = (await linesOf(output))
    .filter(({ outcome }) => outcome === 'failed')
    .map((line) => line.rollout_id);
  expect((await linesOf(mended)).map(({ replaces }) => replaces).toSorted()).toEqual(failed.toSorted());
  const report = JSON.parse((await run(['report', output, mended, '--json'])).stdout);
  expect(report).toMatchObject({ total: 4, judged: 4, failures: {} });
});

test('options that contradict one another are refused before anything runs', async () => {
  const { args } = await place();
  for (const [more, message] of [
    [['--budget-cost', '1'], /--budget-cost needs --prices/],
    [['--only-unscored'], /name it with --again/],
    [['--until-resolved', '1', '--oversample', '2'], /do not go with a budget/],
    [['--set', 'a:nonsense=1'], /is no setting of a run/],
  ] as const) {
    expect(await run(args('ok', ...more))).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
  }
});
