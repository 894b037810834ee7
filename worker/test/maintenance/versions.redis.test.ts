/** Records that this version cannot read, or must not change: they affect no others, cost nothing, and wait for another version. */
import { gzipSync } from 'node:zlib';
import { planEvaluation } from '@swefarm/grading';
import { AgentConfig, decide, type RunRecord, UNDERSTOOD } from '@swefarm/shared';
import { bareInstance, rawRedis, until } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { runMaintenance } from '../../src/maintenance/maintenance.ts';
import { BY, endBy, GROUP, runDuties, type Scene, scene, startRun, startSimulated } from './farm.ts';

const NOOP = { agent: AgentConfig.parse({ type: 'noop' }) };

/** Replaces a run's own record by one of another version or with a fault. */
async function rewrite({ farm }: Scene, prefix: string, runId: string, change: (whole: object) => string) {
  const redisCall = rawRedis(farm);
  const key = `{${prefix}}:run:${runId}`;
  const text = String(await redisCall('GET', key));
  await redisCall('SET', key, change(JSON.parse(text)), 'KEEPTTL');
}

const ODD: Record<string, (whole: object) => string> = {
  'a value that a version to come has added': (whole) => JSON.stringify({ ...whole, agent: { type: 'new' } }),
  'a kind to come': (whole) => JSON.stringify({ ...whole, kind: 'of_tomorrow' }),
  'what needs newer workers': (whole) => JSON.stringify({ ...whole, needs: UNDERSTOOD + 1, agent: 'new' }),
  'half of a record': (whole) => JSON.stringify(whole).slice(0, 90),
  'no record at all': () => '[]',
};

test.each(Object.entries(ODD))(
  '%s: duties continue for other runs, it is logged once, and can be removed',
  async (_name, odd) => {
    const at = await scene();
    const { prefix, logTexts } = at;
    const bad = await startRun(at);
    const due = await startRun(at, { deadline_at: Date.now() - 1, group_size: 2 });
    const lost = await startRun(at, { group_size: 1 }, false);
    await rewrite(at, prefix, bad.run.run_id, odd);
    await runDuties(at);
    const { results } = await at.farm.results.read(due.run.run_id, '0');
    expect(results.map(({ result }) => result.reward_row)).toEqual(['deadline', 'deadline']);
    expect(await at.farm.jobs.missing(lost.ids)).toEqual([]);
    expect(await at.farm.jobs.missing(bad.ids)).toEqual([]);
    const matching = logTexts.filter((text) => text.includes(bad.run.run_id));
    expect(matching).toHaveLength(1);
    expect(await at.deps.metrics.registry.metrics()).toContain('swefarm_keeper_runs_skipped 1');
    const listed = (await at.farm.runs.list()).map(({ run_id }) => run_id);
    expect(listed.toSorted()).toEqual([due.run.run_id, lost.run.run_id].toSorted());
    expect(await at.farm.runs.unreadable()).toMatchObject([{ run_id: bad.run.run_id }]);
    await expect(at.farm.runs.get(bad.run.run_id)).rejects.toMatchObject({ code: /run_(newer|unreadable)/ });
    await at.farm.runs.remove(bad.run.run_id);
    expect(await at.farm.jobs.missing(bad.ids)).toEqual(bad.ids);
    expect(await at.farm.jobs.missing(lost.ids)).toEqual([]);
    const keys = (await rawRedis(at.farm)('KEYS', `*${bad.run.run_id}*`)) as string[];
    expect(keys).toEqual([]);
  },
);

test('rollouts of a newer version cost no attempt and wait for a worker that can run them', async () => {
  const at = await scene();
  const { prefix } = at;
  const newer = await startRun(at, { ...NOOP, group_size: 3 });
  await rewrite(at, prefix, newer.run.run_id, (whole) => JSON.stringify({ ...whole, needs: UNDERSTOOD + 1 }));
  // This run is readable, but one of its jobs needs a newer version, and another job has a field of a wrong type.
  const plain = await startRun(at, { ...NOOP, group_size: 3 });
  const [asks = '', odd = '', healthy = ''] = plain.ids;
  const change = async (id: string, data: object): Promise<void> => {
    const job = await at.farm.queue().getJob(id);
    await job?.updateData({ ...job.data, ...data });
  };
  await change(asks, { needs: UNDERSTOOD + 1 });
  await change(odd, { rollout_index: 'second' });
  await startSimulated(prefix);
  const committed = async (run: RunRecord): Promise<number> =>
    (await at.farm.results.counts(run.run_id)).committed;
  const left = [...newer.ids, asks, odd];
  const waiting = async (): Promise<string[]> =>
    (await at.farm.queue().getJobs(['delayed'])).flatMap((job) => (job?.id ? [job.id] : [])).toSorted();
  await until(async () => (await waiting()).length === left.length);
  expect(await waiting()).toEqual(left.toSorted());
  await until(async () => (await at.farm.results.get(healthy)) !== null);
  expect(await at.farm.results.get(healthy)).toMatchObject({ attempt: 1 });
  for (const id of left) expect(await at.farm.journal.read(id)).toEqual([]);
  // A worker of a newer version arrives: here the record loses its new fields.
  await rewrite(at, prefix, newer.run.run_id, (whole) => JSON.stringify({ ...whole, needs: UNDERSTOOD }));
  await change(asks, { needs: UNDERSTOOD });
  await change(odd, { rollout_index: 1 });
  await until(async () => (await committed(newer.run)) === 3 && (await committed(plain.run)) === 3);
  for (const id of left) expect(await at.farm.results.get(id)).toMatchObject({ attempt: 1 });
});

const AN_INSTANCE = bareInstance({ instance_id: GROUP });
const DAMAGED: Record<string, string | Buffer> = {
  'no gzip': 'text',
  'no JSON': gzipSync('{"instance_id": "half'),
  'what the schema refuses': gzipSync(JSON.stringify({ ...AN_INSTANCE, image: 7 })),
  'another one': gzipSync(JSON.stringify({ ...AN_INSTANCE, instance_id: 'a__b.c-2' })),
};

test('a damaged instance fails its rollouts once; a newer one costs no attempt and waits', async () => {
  const at = await scene();
  const { prefix } = at;
  const put = async (runId: string, blob: string | Buffer): Promise<unknown> =>
    await rawRedis(at.farm)('HSET', `{${prefix}}:run:${runId}:instances`, GROUP, blob);
  const damaged = await Promise.all(
    Object.values(DAMAGED).map(async (blob) => {
      const { run, ids } = await startRun(at, { ...NOOP, group_size: 1 });
      await put(run.run_id, blob);
      return ids[0] ?? '';
    }),
  );
  const newer = await startRun(at, { ...NOOP, group_size: 1 });
  const [waits = ''] = newer.ids;
  const of = { ...AN_INSTANCE, needs: UNDERSTOOD + 1, family: 'of_tomorrow' };
  await put(newer.run.run_id, gzipSync(JSON.stringify(of)));
  await startSimulated(prefix);
  const failure = { stage: 'instance', class: 'instance_invalid', attempts: 1 };
  for (const id of damaged) {
    await until(async () => (await at.farm.results.get(id)) !== null);
    const message = expect.stringContaining(`instance ${GROUP} of run ${id.split('.')[0]} is unreadable: `);
    expect(await at.farm.results.get(id)).toMatchObject({
      ...{ outcome: 'failed', reward: null, attempt: 1 },
      failure: { ...failure, message },
    });
    await expect.poll(() => at.farm.journal.read(id)).toMatchObject([{ end: { class: 'instance_invalid' } }]);
  }
  await until(async () => (await at.farm.queue().getJobCounts('delayed')).delayed === 1);
  expect(await at.farm.journal.read(waits)).toEqual([]);
  // A worker of a newer version arrives: here the record loses its new fields.
  await put(newer.run.run_id, gzipSync(JSON.stringify(AN_INSTANCE)));
  await until(async () => (await at.farm.results.get(waits)) !== null);
  expect(await at.farm.results.get(waits)).toMatchObject({ outcome: 'judged', attempt: 1 });
});

test('an instance without tests is a failure of the instance, not a bug', async () => {
  const at = await scene();
  const { prefix } = at;
  const { run, ids } = await startRun(at, { ...NOOP, group_size: 1 });
  const work = async () => void planEvaluation(AN_INSTANCE, run.evaluation.grader);
  await startSimulated(prefix, { slots: 1, work });
  const [id = ''] = ids;
  await until(async () => (await at.farm.results.get(id)) !== null);
  const failure = { class: 'instance_invalid', message: expect.stringContaining('no test command is known') };
  expect(await at.farm.results.get(id)).toMatchObject({ outcome: 'failed', reward: null, failure });
});

test('a run that makes a duty fail does not stop the duty for other runs', async () => {
  const at = await scene();
  const { prefix, logTexts } = at;
  const broken = await startRun(at);
  const due = await startRun(at, { group_size: 1 });
  await rawRedis(at.farm)('SET', `{${prefix}}:run:${broken.run.run_id}:paused`, 'no JSON');
  await rawRedis(at.farm)('HSET', `{${prefix}}:run:${broken.run.run_id}:journal`, broken.ids[0] ?? '', '{[');
  await endBy(at, due.run, due.ids[0] ?? '', { judged: 1 });
  await runDuties(at);
  const { runs } = await at.farm.groups.unfinishedRuns();
  expect(runs.map(({ run_id }) => run_id)).toEqual([broken.run.run_id]);
  expect(logTexts.filter((text) => text.startsWith('maintenance duty failed for a run'))).toHaveLength(2);
  expect(broken.ids[0]).toContain(GROUP);
});

test('a newer worker takes over maintenance while only it can read some runs', async () => {
  const at = await scene();
  const { prefix } = at;
  const newer = await startRun(at);
  await rewrite(at, prefix, newer.run.run_id, (whole) => JSON.stringify({ ...whole, needs: UNDERSTOOD + 1 }));
  const stop = new AbortController();
  const maintaining = runMaintenance('old', [], at.deps, stop.signal);
  const taken = (): Promise<boolean> => at.farm.leases.acquire('keeper', 'new', 60_000);
  await until(async () => !(await taken()));
  const beat = { runtime: 'host', slots: 4, active: 0, started_at: 1, metrics: null, paused: null };
  const alive = setInterval(() => {
    void at.farm.registry.beat({ worker: 'new', node: 'n2', ...beat, understands: UNDERSTOOD + 1 });
  }, 500);
  onTestFinished(() => clearInterval(alive));
  await until(taken);
  stop.abort();
  await maintaining;
  expect(await at.farm.leases.acquire('keeper', 'old', 1_000)).toBe(false);
});

test('after a roll-back, fields of a newer version beside results are ignored at no cost', async () => {
  const at = await scene();
  const { prefix } = at;
  const redisCall = rawRedis(at.farm);
  const { run, ids } = await startRun(at);
  const [tried = '', marked = '', done = ''] = ids;
  const key = `{${prefix}}:run:${run.run_id}`;
  const entry = { worker: 'w9', node: 'n9', claim: 'c', claimed_at: 1, ended_at: 2, of_tomorrow: true };
  const ended = { stage: 'of_tomorrow', class: 'of_tomorrow', cause: 'new', kept: null };
  const entries = [1, 2, 3, 4].map((attempt) => ({ ...entry, attempt, end: ended }));
  await redisCall('HSET', `${key}:journal`, tried, JSON.stringify(entries));
  await redisCall('HSET', `${key}:cancelled`, marked, 'of_tomorrow');
  await redisCall('HSET', `${key}:committed`, done, '1 of_tomorrow 1-0 w9\tc more');
  await redisCall('SET', `{${prefix}}:worker:w9`, JSON.stringify({ worker: 'w9', runtime: 7 }), 'PX', 15_000);
  await redisCall('ZADD', `{${prefix}}:workers`, Date.now() + 15_000, 'w9');
  const claim = await at.farm.journal.claim(tried, BY);
  expect(claim).toMatchObject({ status: 'claimed', attempt: 5 });
  if (claim.status === 'claimed') expect(decide(claim.previous)).toMatchObject({ action: 'run', delayMs: 0 });
  expect(await at.farm.cancel.isCancelled([marked])).toEqual(new Map([[marked, 'cancelled']]));
  expect(await at.farm.journal.claim(done, BY)).toMatchObject({ status: 'committed', attempt: 1 });
  // A worker with an unreadable record is alive: its rollouts are not lost.
  const alive = { worker: 'w9', slots: 0, paused: expect.any(String) };
  expect(await at.farm.registry.list()).toMatchObject([alive]);
  await runDuties(at, 1);
  expect(await at.farm.results.get(marked)).toMatchObject({ outcome: 'cancelled', reward_row: 'cancelled' });
});
