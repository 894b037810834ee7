/** Tests that rollouts that wait for their policy use no slot, sandbox, clock, attempt or failure. */
import {
  ADMISSION_WAIT_MS,
  AgentConfig,
  type Farm,
  newId,
  PolicyConfig,
  parseRolloutId,
  resumeRun,
  silentLog,
} from '@swefarm/shared';
import { bareRun, rawRedis, type ScriptedPolicy, startScriptedPolicy } from '@swefarm/testkit';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { type Admission, createAdmission, type Permit } from '../src/admission/admission.ts';
import { poolOf } from '../src/admission/pool.ts';
import { startHostWorker, treeInstance, ungraded, useHost } from './hostworker.ts';
import { aWorker, claimBy, openScene } from './maintenance/farm.ts';

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

type Admitting = number | 'auto' | 'off';

/** Submits a run of which at most `admission` rollouts play at once. */
async function submitRun(farm: Farm, rollouts: number, admission: Admitting, timeLimit = 600) {
  const config = PolicyConfig.parse({ urls: [policy.url], model: 'scripted', admission });
  const agent = AgentConfig.parse({ time_limit: timeLimit });
  const run = bareRun({ run_id: newId(), group_size: rollouts, ...ungraded(), policy: config, agent });
  await farm.runs.create(run, [treeInstance(host.folder)]);
  const ids = await farm.groups.rollouts(run.run_id);
  await farm.jobs.enqueue(run, ids);
  return { run, ids };
}

/** Starts a run on one worker with `slots` slots. At most `admission` of its rollouts play at once. */
async function scene(rollouts: number, admission: Admitting, { timeLimit = 600, slots = rollouts } = {}) {
  const prefix = `{a-${newId()}}`;
  const { farm } = await openScene(prefix);
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const { run, ids } = await submitRun(farm, rollouts, admission, timeLimit);
  const stop = new AbortController();
  const given = { farm, prefix, ...host, slots, limitMs: 60_000, stop: stop.signal };
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

test('waiting rollouts occupy no slot, so those of another policy start at once', async () => {
  await policy.setFault({ kind: 'unavailable' });
  onTestFinished(() => policy.setFault());
  const at = await scene(8, 1, { slots: 2 });
  await expect.poll(at.pool, POLL).toEqual({ playing: 1, waiting: 7 });
  const other = await submitRun(at.farm, 1, 'off');
  const started = async () => (await at.farm.journal.read(other.ids[0] ?? '')).length;
  await expect.poll(started, POLL).toBe(1);
  expect(at.node.active.count).toBe(2);
  const attempts = await Promise.all(at.ids.map(async (id) => (await at.farm.journal.read(id)).length));
  expect(attempts.reduce((sum, one) => sum + one)).toBe(1);
});

test('a freed slot starts a waiting rollout before the delay of its job ends', async () => {
  const from = performance.now();
  const at = await scene(6, 1, { slots: 3 });
  await expect.poll(async () => (await at.results()).length, POLL).toBe(6);
  expect(performance.now() - from).toBeLessThan(ADMISSION_WAIT_MS);
  // Three jobs start at once, so any of them may be admitted first. The others are ordered by instance and index.
  const [first, ...others] = (await at.results()).map(({ rollout_id }) => rollout_id);
  expect(others).toEqual(at.ids.toSorted().filter((id) => id !== first));
});

test('a waiting rollout is cancelled without admission', async () => {
  const at = await scene(2, 1);
  await expect.poll(at.pool, POLL).toEqual({ playing: 1, waiting: 1 });
  const playing = at.node.active.ids();
  const [waiting = ''] = at.ids.filter((id) => !playing.includes(id));
  await at.farm.cancel.cancelRollouts([waiting]);
  await at.farm.jobs.promote([waiting]);
  await expect
    .poll(() => at.farm.results.get(waiting), POLL)
    .toMatchObject({ outcome: 'cancelled', attempt: 1 });
});

test('paused rollouts take no slot of their pool, even if they waited before', async () => {
  await policy.setFault({ kind: 'unavailable' });
  onTestFinished(() => policy.setFault());
  const at = await scene(3, 1);
  await expect.poll(at.pool, POLL).toEqual({ playing: 1, waiting: 2 });
  const [first = ''] = at.ids;
  const { runId } = parseRolloutId(first);
  await at.farm.groups.pause(runId, 'by hand');
  const playing = at.node.active.ids();
  await at.farm.jobs.promote(at.ids.filter((id) => !playing.includes(id)));
  await expect.poll(at.pool, POLL).toEqual({ playing: 1, waiting: 0 });
  const other = await submitRun(at.farm, 1, 1);
  await expect.poll(at.pool, POLL).toEqual({ playing: 1, waiting: 1 });
  await policy.setFault();
  await expect.poll(() => at.farm.results.get(other.ids[0] ?? ''), POLL).toMatchObject({ attempt: 1 });
  expect(await at.results()).toHaveLength(1);
  await resumeRun(at.farm, runId);
  await at.farm.jobs.promote(at.ids);
  await expect.poll(async () => (await at.results()).length, POLL).toBe(3);
});

const poolName = (): string => new URL(policy.url).host;

test('a job whose rollout plays on another worker does not change its pool', async () => {
  const prefix = `{a-${newId()}}`;
  const { farm, deps } = await openScene(prefix);
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const { ids } = await submitRun(farm, 1, 1);
  const [id = ''] = ids;
  const pool = `${poolName()}#1`;
  await claimBy({ farm }, id, { worker: 'other', node: 'node-other' });
  await farm.admissions.exchange(pool, [{ rollout: id, plays: true, order: 1 }], 0);
  await aWorker({ farm, deps }, 'other');
  const stop = new AbortController();
  await startHostWorker({ farm, prefix, ...host, slots: 1, limitMs: 60_000, stop: stop.signal });
  const delayed = async () => {
    await aWorker({ farm, deps }, 'other');
    return (await farm.queue().getJobCounts('delayed')).delayed;
  };
  await expect.poll(delayed, POLL).toBe(1);
  const send = rawRedis(farm);
  expect(await send('ZRANGE', `${prefix}:admission:playing:${pool}`, 0, -1)).toEqual([id]);
});

test('a suspended rollout asks nothing, its time limit does not run, and it plays on', async () => {
  const at = await scene(1, 1, { timeLimit: LIMIT_SECONDS });
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
  const apiKey = async () => null;
  const permits: Permit[] = [];
  const enter = async (worker: Admission, rollout: string): Promise<boolean> => {
    const admitted = await worker.enter(pool, { rollout, order: 1, apiKey }, signal);
    if ('pause' in admitted) permits.push(admitted);
    return 'pause' in admitted;
  };
  for (const [at, worker] of [...workers, ...workers].entries())
    for (let one = 0; one < 10; one++)
      await expect.poll(() => enter(worker, `r${at}.${one}`), POLL).toBe(true);
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
  const at = await scene(1, 'off', { timeLimit: LIMIT_SECONDS });
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
