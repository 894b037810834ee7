/** Tests results that this version cannot read, because of odd numbers or another version: readers skip and name them, and end. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FarmSource } from '@swefarm/gateway';
import { bearer, testGateway } from '@swefarm/gateway/test/gateway.ts';
import { post, row } from '@swefarm/gateway/test/gym.ts';
import { submit } from '@swefarm/runs';
import { instances, testConfig, testFarm, testFolder, testRecord } from '@swefarm/runs/test/farm.ts';
import { type Farm, parseRolloutId } from '@swefarm/shared';
import { plantResult, rawRedis, until } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { aResult } from '@swefarm/trajectories/test/result.ts';
import { expect, test } from 'vitest';
import { watchFarm } from '../src/view/watching.ts';
import { exited, linesOf, run } from './cli.ts';
import { farmVariables } from './scene.ts';

const whole = (rollout_id: string) => {
  const { runId, instanceId, index } = parseRolloutId(rollout_id);
  const names = { run_id: runId, rollout_id, instance_id: instanceId, rollout_index: index };
  return aResult(names) as unknown as Record<string, unknown>;
};

/** A token count as fab4d0c committed it, an exit status and an outcome of a future version, and invalid JSON. */
const ODD: readonly ((id: string) => string)[] = [
  (id) => JSON.stringify({ ...whole(id), tokens: { prompt: 100.5, completion: 5 } }),
  (id) => JSON.stringify({ ...whole(id), exit_status: 'of_tomorrow' }),
  (id) => JSON.stringify({ ...whole(id), outcome: 'of_tomorrow' }),
  (id) => JSON.stringify(whole(id)).slice(0, 300),
];

/** Makes a run of six rollouts with two readable and four unreadable results. */
async function spoiledRun(config = testConfig()) {
  const farm = await testFarm(config);
  const all = instances(1);
  const record = testRecord(all, 6);
  const { rollouts } = await submit(farm, { record, instances: all });
  const send = rawRedis(farm);
  await commitRollout(farm, record, rollouts[0] ?? '');
  for (const [at, odd] of ODD.entries()) {
    const id = rollouts[at + 1] ?? '';
    await plantResult(send, config.redis_prefix, id, odd(id));
  }
  await commitRollout(farm, record, rollouts[5] ?? '');
  const env = farmVariables(config);
  return { farm, record, rollouts, env };
}

test('collect skips and names unreadable results, ends, and sets its exit code', async () => {
  const { farm, record, rollouts, env } = await spoiledRun();
  const path = join(await testFolder(), 'out.jsonl');
  const first = await run(['collect', record.run_id, '--output', path], env);
  expect(first.code, first.stderr).toBe(10);
  const cancelled = [rollouts[0], rollouts[5]];
  expect((await linesOf(path)).map(({ rollout_id }) => rollout_id)).toEqual(cancelled);
  expect(first.stderr).toMatch(/\.1: unreadable result \(entry \d+-\d+ .*tokens\.prompt: .*expected int/);
  expect(first.stderr).toMatch(/\.2: unreadable result .*exit_status/);
  expect(first.stderr).toMatch(/\.3: unreadable result .*outcome/);
  expect(first.stderr).toMatch(/\.4: unreadable result .*invalid JSON/);
  expect(first.stderr).toMatch(/2 of 6 rollouts judged.*4 with a result that cannot be read/);
  const again = await run(['collect', record.run_id, '--output', path, '--resume'], env);
  expect(again.code).toBe(10);
  expect((await readFile(path, 'utf8')).trimEnd().split('\n')).toHaveLength(2);
  const report = await run(['report', record.run_id], env);
  expect(report).toMatchObject(exited(0, /not counted: .*\.1: unreadable result/));
  // Each unreadable result is counted once, although several commands read it.
  expect(await farm.results.unreadable()).toBe(4);
});

test('watch and the page go on, and show what cannot be read among the failures', async () => {
  const { farm, record, rollouts } = await spoiledRun();
  const seen = await watchFarm(farm)();
  expect(seen.failures.map(({ rollout_id, cause }) => [rollout_id, cause]).toSorted()).toEqual(
    rollouts.slice(1, 5).map((id) => [id, 'result_unreadable']),
  );
  const page = new FarmSource(farm);
  const shown = await page.run(record.run_id, '0');
  expect(shown.rollouts.map(({ index, failure }) => [index, failure])).toEqual(
    expect.arrayContaining([
      [0, null],
      [1, 'result_unreadable'],
      [4, 'result_unreadable'],
      [5, null],
    ]),
  );
  expect(await page.run(record.run_id, shown.cursor)).toMatchObject({ rollouts: [] });
  const detail = await page.rollout(rollouts[1] ?? '');
  expect(detail).toMatchObject({ result: null, missing: expect.stringContaining('tokens.prompt') });
  expect(await page.live(rollouts[1] ?? '', '0')).toMatchObject({ finished: true });
});

test('a call with an unreadable result is answered, and delays neither siblings nor results', async () => {
  const { farm, url, config } = await testGateway();
  const send = rawRedis(farm);
  const waiting = async (): Promise<string[]> =>
    (await farm.queue().getJobs(['prioritized'])).flatMap((job) => (job.id ? [job.id] : [])).toSorted();
  const calls = [0, 1].map(() => post(url, row({ _ng_rollout_index: 0 })));
  await until(async () => (await waiting()).length === 2);
  const [odd = '', well = ''] = await waiting();
  await plantResult(send, config.redis_prefix, odd, ODD[0]?.(odd) ?? '');
  await endOf(farm, well);
  const replies = await Promise.all(calls);
  expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 503]);
  const refused = replies.find(({ status }) => status === 503);
  expect(await refused?.json()).toMatchObject({
    error: { code: 'result_unreadable', message: expect.stringContaining('tokens.prompt') },
  });
  const { runId } = parseRolloutId(odd);
  const ask = async (path: string) => await fetch(`${url}${path}`, { headers: bearer() });
  expect(await (await ask(`/v1/runs/${runId}/results`)).json()).toMatchObject({
    results: [{ rollout_id: well }],
    unreadable: [{ rollout_id: odd, problem: expect.stringContaining('tokens.prompt') }],
  });
  const one = await ask(`/v1/rollouts/${odd}`);
  expect([one.status, await one.json()]).toMatchObject([500, { error: { code: 'result_unreadable' } }]);
  expect(await (await ask('/metrics')).text()).toContain('swefarm_results_unreadable_total 1');
});

async function endOf(farm: Farm, rolloutId: string): Promise<void> {
  const record = await farm.runs.get(parseRolloutId(rolloutId).runId);
  if (!record) throw new Error(`the run of ${rolloutId} is gone`);
  await commitRollout(farm, record, rolloutId);
}
