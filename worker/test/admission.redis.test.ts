/** Rollouts that wait for their policy: without a sandbox, without a running clock, and without a failure. */
import { AgentConfig, newId, PolicyConfig, type PolicyKey, silentLog } from '@swefarm/shared';
import { bareRun, rawRedis, type ScriptedPolicy, startScriptedPolicy } from '@swefarm/testkit';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { createAdmission, type Permit } from '../src/admission/admission.ts';
import { poolOf } from '../src/admission/pool.ts';
import { startHostWorker, treeInstance, ungraded, useHost } from './hostworker.ts';
import { openScene } from './maintenance/farm.ts';

const POLL = { timeout: 60_000, interval: 20 };
vi.setConfig({ testTimeout: 180_000 });

/** Long beside the work of a rollout, also on a busy machine. */
const LIMIT_SECONDS = 15;

const host = useHost('admission');
let policy: ScriptedPolicy;
beforeAll(async () => {
  const talk = [...Array.from({ length: 10 }, () => ({ command: 'pwd' })), { submit: true as const }];
  policy = await startScriptedPolicy({
    script: { conversations: [{ variants: [talk] }] },
    delay: { fixed_ms: 30 },
  });
});
afterAll(() => policy[Symbol.asyncDispose]());

/** A run whose rollouts are all claimed by one worker, of which `admission` play at once. */
async function scene(rollouts: number, admission: number | 'auto' | 'off', timeLimit = 600) {
  const prefix = `{a-${newId()}}`;
  const { farm } = await openScene(prefix);
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const config = PolicyConfig.parse({ urls: [policy.url], model: 'scripted', admission });
  const agent = AgentConfig.parse({ time_limit: timeLimit });
  const run = bareRun({ group_size: rollouts, ...ungraded(), policy: config, agent });
  await farm.runs.create(run, [treeInstance(host.folder)]);
  const ids = await farm.groups.rollouts(run.run_id);
  await farm.jobs.enqueue(run, ids);
  const stop = new AbortController();
  const given = { farm, prefix, ...host, slots: rollouts, limitMs: 60_000, stop: stop.signal };
  const { node, sandboxes } = await startHostWorker(given);
  const pool = async () =>
    (await farm.admissions.list()).map(({ playing, waiting }) => ({ playing, waiting }))[0];
  const results = async () => (await farm.results.read(run.run_id, '0')).results.map(({ result }) => result);
  return { farm, prefix, ids, stop, node, sandboxes, pool, results };
}

test('rollouts beyond the limit wait without a sandbox, and none needs a second attempt', async () => {
  const at = await scene(6, 2);
  const playing: number[] = [];
  const done = async (): Promise<number> => {
    playing.push((await at.pool())?.playing ?? 0);
    return (await at.results()).length;
  };
  await expect.poll(at.pool, POLL).toEqual({ playing: 2, waiting: 4 });
  expect(await at.sandboxes()).toBeLessThanOrEqual(2);
  await expect.poll(done, POLL).toBe(6);
  expect(Math.max(...playing)).toBe(2);
  const results = await at.results();
  for (const result of results)
    expect(result).toMatchObject({ outcome: 'judged', attempt: 1, failure: null, exit_status: 'submitted' });
  const [shortest = 0, longest = 0] = [...results.map(({ seconds }) => seconds.queued)]
    .sort((a, b) => a - b)
    .slice(-2);
  expect(shortest).toBeGreaterThan(0.3);
  expect(longest).toBeGreaterThanOrEqual(shortest);
  await expect.poll(at.pool, POLL).toEqual({ playing: 0, waiting: 0 });
});

test('a waiting rollout is cancelled, and a worker that stops hands waiting rollouts back', async () => {
  const at = await scene(3, 1);
  await expect.poll(at.pool, POLL).toEqual({ playing: 1, waiting: 2 });
  const playing = await rawRedis(at.farm)('ZRANGE', `${at.prefix}:admission:playing:${poolName()}#1`, 0, -1);
  const [first = '', second = ''] = at.ids.filter((id) => !(playing as string[]).includes(id));
  at.node.active.abort(first, 'cancelled', 'deadline');
  await expect
    .poll(() => at.farm.results.get(first), POLL)
    .toMatchObject({
      ...{ outcome: 'cancelled', attempt: 1 },
    });
  at.stop.abort();
  const ends = async () => (await at.farm.journal.read(second)).map(({ end }) => [end?.class, end?.cause]);
  await expect.poll(ends, POLL).toContainEqual(['drained', 'the rollout waited for its policy']);
  expect(await at.farm.results.get(second)).toBeNull();
});

const poolName = (): string => new URL(policy.url).host;

test('a suspended rollout asks nothing, its time limit does not run, and it plays on', async () => {
  const at = await scene(1, 1, LIMIT_SECONDS);
  const key = (part: string): string => `${at.prefix}:admission:${part}:${poolName()}#1`;
  const send = rawRedis(at.farm);
  const answered = () => policy.stats().rollouts[at.ids[0] ?? '']?.answered ?? 0;
  await expect.poll(answered, POLL).toBeGreaterThan(1);
  // Rollouts of another worker that were admitted earlier.
  await send('ZADD', key('lapses'), Date.now() + 3_600_000, 'earlier');
  await send('ZADD', key('playing'), 1, 'earlier');
  let before = -1;
  const stands = () => {
    const same = answered() === before;
    before = answered();
    return same;
  };
  await expect.poll(stands, { ...POLL, interval: 500 }).toBe(true);
  const stood = answered();
  await new Promise((resolve) => setTimeout(resolve, 1_000 * LIMIT_SECONDS));
  expect(answered()).toBe(stood);
  await send('ZREM', key('playing'), 'earlier');
  await expect
    .poll(async () => (await at.results())[0], POLL)
    .toMatchObject({
      ...{ outcome: 'judged', attempt: 1, exit_status: 'submitted', turns: 11 },
    });
});

test('an endpoint that preempts suspends rollouts on the whole farm, and room lets them play', async () => {
  let load = 'vllm:kv_cache_usage_perc 0.2\nvllm:num_requests_running 5\nvllm:num_preemptions_total 0\n';
  const url = await listening((request, response) => {
    response.statusCode = request.url === '/metrics' ? 200 : 404;
    response.end(load);
  });
  const { farm } = await openScene(`{a-${newId()}}`);
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const config = PolicyConfig.parse({ urls: [`${url}/v1`], model: 'm' });
  const pool = await poolOf(config, farm.policies);
  if (!pool) throw new Error('no pool');
  const workers = ['w1', 'w2'].map((worker) =>
    createAdmission({ farm, worker, log: silentLog(), pollMs: 200 }, 50),
  );
  onTestFinished(() => {
    for (const one of workers) one[Symbol.dispose]();
  });
  const signal = new AbortController().signal;
  const apiKey: PolicyKey | null = null;
  const permits: Permit[] = [];
  for (const [at, worker] of [...workers, ...workers].entries())
    for (let one = 0; one < 10; one++)
      permits.push(
        await worker.enter(pool, { rollout: `r${at}.${one}`, rank: 1, apiKey }, signal, () => undefined),
      );
  expect(permits).toHaveLength(40);
  const suspended = () => permits.filter(({ pause }) => pause.paused).length;
  expect(suspended()).toBe(0);
  load = load.replace(/total 0/, 'total 9');
  await expect.poll(suspended, POLL).toBeGreaterThanOrEqual(8);
  // Those that were admitted last wait.
  expect(permits[0]?.pause.paused).toBe(false);
  expect(permits.at(-1)?.pause.paused).toBe(true);
  for (const permit of permits.slice(0, 10)) permit[Symbol.dispose]();
  await expect.poll(suspended, POLL).toBe(0);
});

test('a rollout without a metric of its endpoint plays at once', async () => {
  const at = await scene(4, 'auto');
  await expect.poll(async () => (await at.results()).length, POLL).toBe(4);
  const [pool] = await at.farm.admissions.list();
  expect(pool).toMatchObject({ limit: null, state: { endpoints: [] } });
});

test('an outage by 503 longer than the time limit throws no answer away', async () => {
  const at = await scene(1, 'off', LIMIT_SECONDS);
  const [id = ''] = at.ids;
  await expect.poll(() => policy.stats().rollouts[id]?.answered ?? 0, POLL).toBeGreaterThan(1);
  await policy.setFault({ kind: 'unavailable' });
  await new Promise((resolve) => setTimeout(resolve, 1_000 * LIMIT_SECONDS));
  await policy.setFault();
  await expect
    .poll(async () => (await at.results())[0], POLL)
    .toMatchObject({
      ...{ outcome: 'judged', attempt: 1, exit_status: 'submitted', turns: 11 },
    });
});
