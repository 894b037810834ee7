/** Tests collections with `swefarm rollout` as a process with its own Redis and a fake worker. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { lines } from '@swefarm/datasets/test/rows.ts';
import { redisUrl, testConfig, testFarm } from '@swefarm/runs/test/farm.ts';
import { newId } from '@swefarm/shared';
import { words } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, test } from 'vitest';
import { exited, fakeWorker, jsonLines, linesOf, run } from './cli.ts';
import { farmOptions, farmWithWorker, flaskId, flaskRows } from './scene.ts';

async function prepare() {
  const scene = await flaskRows(2);
  const { dataset, output, state, at } = scene;
  const prices = at('prices.yaml');
  await writeFile(prices, 'm: {prompt: 1000000, completion: 0}\n');
  const asked = words`--policy-url http://127.0.0.1:9/v1 --no-probe --model m`;
  const common = words`--dataset ${dataset} --state-dir ${state} ${asked}`;
  const args = (mode: string, ...more: string[]) =>
    words`rollout ${common} --output ${output} --worker-command ${fakeWorker(mode)} ${more}`;
  const submitting = (...more: string[]) => words`submit ${common} --output ${output} ${more}`;
  const rolloutsOf = async (path = output) =>
    (await linesOf(path)).map(({ rollout_id: id }) => id.split('.').slice(1).join('.')).toSorted();
  return { ...scene, common, prices, args, submitting, rolloutsOf };
}

test('rollouts of an instance run until enough are resolved, and no further', async () => {
  const { args, output, rolloutsOf } = await prepare();
  const ran = await run(args('fail', '--until-resolved', '1', '--max-rollouts', '5'));
  // The rollout of index 0 fails, 1 is not resolved, and 2 is resolved.
  expect(await rolloutsOf()).toEqual(
    [0, 1].flatMap((at) => [0, 1, 2].map((index) => `pallets__flask-${at}.${index}`)),
  );
  expect(ran).toMatchObject(exited(10, /4 of 6 rollouts judged, 2 resolved/));
  const report = await run(['report', output, '--json', '--k', '1,2']);
  expect(report.stderr).toContain('--until-resolved ends an instance at a success');
  const compared = await run(['compare', output, output]);
  expect(compared).toMatchObject(exited(2, '--until-resolved ended an instance at a success'));
  expect(JSON.parse(report.stdout)).toMatchObject({
    ...{ judged: 4, resolved: 2, pass_at: {}, pass_at_1_avg_of_k: null },
    ...{ accuracy_interval: null, scaling: [] },
  });
});

test('sets are separate runs with a tag in lines and file names; a second call resumes them', async () => {
  const { at, args, prices } = await prepare();
  const sets = ['--set', 't05:temperature=0.5,n=1', '--set', 't10:temperature=1,n=2', '--prices', prices];
  const ran = await run(args('ok', ...sets));
  expect(ran.code).toBe(0);
  const half = await linesOf(at('out.t05.jsonl'));
  const whole = await linesOf(at('out.t10.jsonl'));
  expect([half.length, whole.length]).toEqual([2, 4]);
  expect(new Set(half.map(({ tag }) => tag))).toEqual(new Set(['t05']));
  for (const { tokens, cost } of half) expect(cost).toBe((tokens as { prompt: number }).prompt);
  expect((await run(args('ok', ...sets))).code).toBe(2);
  expect(await run(args('ok', ...sets, '--resume'))).toMatchObject({ code: 0 });
  expect(await linesOf(at('out.t05.jsonl'))).toEqual(half);
  expect(existsSync(at('out.jsonl'))).toBe(false);
});

test('a budget ends the queueing; --resume with a larger one goes on', async () => {
  const { args, rolloutsOf } = await prepare();
  const budget = ['--group-size', '4', '--budget-tokens', '1', '--in-flight', '2'];
  const ran = await run(args('ok', ...budget));
  expect(ran).toMatchObject(
    exited(10, /stopped: \d+ of 1 tokens are spent; with a larger budget, continue with/),
  );
  expect((await rolloutsOf()).length).toBeLessThanOrEqual(3);
  const more = await run(args('ok', '--group-size', '4', '--budget-tokens', '1000000', '--resume'));
  expect(more.code).toBe(0);
  expect(await rolloutsOf()).toHaveLength(8);
});

test('only the failures of an output run again, and a report counts each rollout once', async () => {
  const { at, output, args, rolloutsOf } = await prepare();
  expect((await run(args('fail', '--group-size', '2'))).code).toBe(10);
  const mended = at('again.jsonl');
  const wrong = await run([...args('ok'), '--again', output, '--only-failures', 'bug', '--output', mended]);
  expect(wrong).toMatchObject(exited(2, /its failures are policy_unreachable/));
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
    expect(await run(args('ok', ...more))).toMatchObject(exited(2, message));
  }
});

test('submit with an output collects sets, until resolved, within budgets, and resumes', async () => {
  const { at, output, prices, submitting, rolloutsOf } = await prepare();
  const farm = farmWithWorker('fail');
  const until = ['--until-resolved', '1', '--max-rollouts', '5', '--prices', prices];
  const ran = await run(submitting(...farm, ...until));
  expect(await rolloutsOf()).toEqual(
    [0, 1].flatMap((at) => [0, 1, 2].map((index) => `pallets__flask-${at}.${index}`)),
  );
  expect(ran).toMatchObject(exited(10, /4 of 6 rollouts judged, 2 resolved/));
  for (const line of await linesOf(output)) expect(line.cost).toEqual(expect.any(Number));
  const [{ run_id: id } = { run_id: '' }] = await linesOf(output);
  const other = await run(['collect', String(id), '--output', output, '--resume', ...farm]);
  expect(other).toMatchObject(exited(2, /only the same command with --resume/));

  const sets = ['--set', 'one:n=1', '--set', 'two:n=2', '--output', at('sets.jsonl')];
  expect(await run(submitting(...farm, ...sets))).toMatchObject({ code: 10 });
  const two = await linesOf(at('sets.two.jsonl'));
  expect(two.map(({ tag }) => tag)).toEqual(Array(4).fill('two'));
  expect(await run(submitting(...farm, ...sets, '--resume'))).toMatchObject({ code: 10 });
  expect(await linesOf(at('sets.two.jsonl'))).toEqual(two);
});

test('submit without an output queues sets in order, and refuses options that need a watcher', async () => {
  const { at, common, prices } = await prepare();
  const prefix = `t${newId()}`;
  const farm = farmOptions(prefix);
  const quiet = words`submit ${common} ${farm}`;
  for (const option of [
    ['--until-resolved', '1'],
    ['--budget-tokens', '5'],
  ]) {
    expect(await run([...quiet, ...option])).toMatchObject(
      exited(2, new RegExp(`${option[0]}: needs a command that reads.*add --output FILE`)),
    );
  }
  const history = at('history.jsonl');
  const ended = (index: number, total: number) => ({
    outcome: 'judged',
    rollout_id: `h.${flaskId(index)}.0`,
    instance_id: flaskId(index),
    seconds: { total },
  });
  await writeFile(history, lines(ended(0, 1), ended(1, 9)));
  const ran = await run(
    words`${quiet} --set a:n=1 --set b:n=2 --longest-first ${history} --prices ${prices}`,
  );
  expect(ran).toMatchObject({ code: 0 });
  const runs = jsonLines(ran.stdout);
  expect(runs).toMatchObject([
    { tag: 'a', rollouts: 2, queued: 2 },
    { tag: 'b', rollouts: 4, queued: 4 },
  ]);
  const there = await testFarm(testConfig(redisUrl(), prefix));
  const queue = there.queue();
  const waiting = (await queue.getJobs(['prioritized', 'waiting'], 0, -1, true)).map(({ id }) => String(id));
  const second = String(runs[1]?.run_id);
  expect(waiting.filter((id) => id.includes(second)).map((id) => id.slice(-'1.0'.length))).toEqual([
    ...['1.0', '1.1', '0.0', '0.1'],
  ]);
  // The run record has the price, so the report needs no price file.
  const record = await there.runs.get(second);
  if (record) await commitRollout(there, record, `${second}.pallets__flask-0.0`);
  const report = JSON.parse((await run(['report', second, ...farm, '--json'])).stdout);
  expect(report.costs).toMatchObject({ rollouts: 1, per_success: expect.any(Number) });
});
