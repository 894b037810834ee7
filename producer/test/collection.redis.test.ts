/** Collections by `swefarm rollout`: its own process, its own Redis, a worker by its command. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lines, row } from '@swefarm/datasets/test/rows.ts';
import { redisUrl, testConfig, testFarm, testFolder } from '@swefarm/runs/test/farm.ts';
import { newId } from '@swefarm/shared';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, onTestFinished, test } from 'vitest';
import { fakeWorker, linesOf, run } from './cli.ts';

async function prepare() {
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
      '--no-probe',
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
  const { args, output, rolloutsOf } = await prepare();
  const ran = await run(args('fail', '--until-resolved', '1', '--max-rollouts', '5'));
  // Index 0 fails, 1 is not resolved, 2 is.
  expect(await rolloutsOf()).toEqual(
    [0, 1].flatMap((at) => [0, 1, 2].map((index) => `pallets__flask-${at}.${index}`)),
  );
  expect(ran.code).toBe(10);
  expect(ran.stderr).toMatch(/4 of 6 rollouts judged, 2 resolved/);
  const report = await run(['report', output, '--json', '--k', '1,2']);
  expect(report.stderr).toContain('--until-resolved ends an instance at a success');
  expect(JSON.parse(report.stdout)).toMatchObject({
    ...{ judged: 4, resolved: 2, pass_at: {}, pass_at_1_avg_of_k: null },
    ...{ accuracy_interval: null, scaling: [] },
  });
});

test('sets are runs of their own, with their tag in lines and file names; a second call resumes them', async () => {
  const { folder, args, prices } = await prepare();
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
  const { args, rolloutsOf } = await prepare();
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
  const { folder, output, args, rolloutsOf } = await prepare();
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
  const { args } = await prepare();
  for (const [more, message] of [
    [['--budget-cost', '1'], /--budget-cost needs --prices/],
    [['--only-unscored'], /name it with --again/],
    [['--until-resolved', '1', '--oversample', '2'], /do not go with a budget/],
    [['--set', 'a:nonsense=1'], /is no setting of a run/],
  ] as const) {
    expect(await run(args('ok', ...more))).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
  }
});

/** A farm with a worker that runs until the test ends. */
function farmWith(mode: string): string[] {
  const farm = ['--redis-url', redisUrl(), '--redis-prefix', `t${newId()}`];
  const [program = '', ...fake] = fakeWorker(mode).split(' ');
  const worker = spawn(program, [...fake, 'run', ...farm], { stdio: 'ignore' });
  onTestFinished(() => void worker.kill('SIGTERM'));
  return farm;
}

/** The same options for `submit`, without those of a local worker. */
const submitting = (args: string[]): string[] => {
  const [, ...rest] = args;
  const at = rest.indexOf('--worker-command');
  return ['submit', ...rest.toSpliced(at, 2)];
};

test('submit with an output collects as rollout does, on the workers of a farm: sets, until resolved, budgets, resumed', async () => {
  const { folder, output, prices, args, rolloutsOf } = await prepare();
  const farm = farmWith('fail');
  const until = ['--until-resolved', '1', '--max-rollouts', '5', '--prices', prices];
  const ran = await run(submitting(args('', ...farm, ...until)));
  expect(await rolloutsOf()).toEqual(
    [0, 1].flatMap((at) => [0, 1, 2].map((index) => `pallets__flask-${at}.${index}`)),
  );
  expect(ran).toMatchObject({
    code: 10,
    stderr: expect.stringMatching(/4 of 6 rollouts judged, 2 resolved/),
  });
  for (const line of await linesOf(output)) expect(line.cost).toEqual(expect.any(Number));
  const [{ run_id: id } = { run_id: '' }] = await linesOf(output);
  const other = await run(['collect', String(id), '--output', output, '--resume', ...farm]);
  expect(other).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/only the same command with --resume/),
  });

  const sets = ['--set', 'one:n=1', '--set', 'two:n=2', '--output', join(folder, 'sets.jsonl')];
  expect(await run(submitting(args('', ...farm, ...sets)))).toMatchObject({ code: 10 });
  const two = await linesOf(join(folder, 'sets.two.jsonl'));
  expect(two.map(({ tag }) => tag)).toEqual(Array(4).fill('two'));
  expect(await run(submitting(args('', ...farm, ...sets, '--resume')))).toMatchObject({ code: 10 });
  expect(await linesOf(join(folder, 'sets.two.jsonl'))).toEqual(two);
});

test('submit without an output queues sets in the wanted order, and refuses by name what would need a watcher', async () => {
  const { folder, args, prices } = await prepare();
  const prefix = `t${newId()}`;
  const farm = ['--redis-url', redisUrl(), '--redis-prefix', prefix];
  const bare = submitting(args('', ...farm));
  const quiet = bare.toSpliced(bare.indexOf('--output'), 2);
  for (const option of [
    ['--until-resolved', '1'],
    ['--budget-tokens', '5'],
  ]) {
    expect(await run([...quiet, ...option])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        new RegExp(`${option[0]}: needs a command that reads.*add --output FILE`),
      ),
    });
  }
  const history = join(folder, 'history.jsonl');
  const slow = {
    outcome: 'judged',
    rollout_id: 'h.pallets__flask-1.0',
    instance_id: 'pallets__flask-1',
    seconds: { total: 9 },
  };
  const fast = {
    outcome: 'judged',
    rollout_id: 'h.pallets__flask-0.0',
    instance_id: 'pallets__flask-0',
    seconds: { total: 1 },
  };
  await writeFile(history, lines(fast, slow));
  const ran = await run([
    ...quiet,
    '--set',
    'a:n=1',
    '--set',
    'b:n=2',
    '--longest-first',
    history,
    '--prices',
    prices,
  ]);
  expect(ran).toMatchObject({ code: 0 });
  const runs = ran.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(runs).toMatchObject([
    { tag: 'a', rollouts: 2, queued: 2 },
    { tag: 'b', rollouts: 4, queued: 4 },
  ]);
  const there = await testFarm(testConfig(redisUrl(), prefix));
  const queue = there.queue();
  const waiting = (await queue.getJobs(['prioritized', 'waiting'], 0, -1, true)).map(({ id }) => String(id));
  const [, second] = runs;
  expect(waiting.filter((id) => id.includes(second.run_id)).map((id) => id.slice(-'1.0'.length))).toEqual([
    ...['1.0', '1.1', '0.0', '0.1'],
  ]);
  // The price went with the run: whoever reports it needs no file.
  const record = await there.runs.get(second.run_id);
  if (record) await commitRollout(there, record, `${second.run_id}.pallets__flask-0.0`);
  const report = JSON.parse((await run(['report', second.run_id, ...farm, '--json'])).stdout);
  expect(report.costs).toMatchObject({ rollouts: 1, per_success: expect.any(Number) });
});
