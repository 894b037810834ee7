/** Who evaluates a patch that several rollouts have: leases, verdicts that nobody takes, and rollouts that are always graded by themselves. */
import { newId, type Report } from '@swefarm/shared';
import { bareInstance, bareRun } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { createWorkerMetrics } from '../src/metrics/workermetrics.ts';
import { type AttemptContext, type Task, Trace } from '../src/rollout/context.ts';
import { endLead, noteVerdict, refuseVerdict, samePatchKey, takeVerdict } from '../src/rollout/samepatch.ts';
import { encodeArtifact, openScene, sharedReport } from './samepatchscene.ts';

const PATCH = 'diff --git a/x b/x\n';

async function setup(grade_once: 'on' | 'unresolved' = 'on') {
  const { farm } = await openScene(`{s-${newId()}}`);
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const run = bareRun({ group_size: 4, evaluation: { ...bareRun().evaluation, grade_once } });
  await farm.runs.create(run, [bareInstance()]);
  const metrics = createWorkerMetrics();
  const stop = new AbortController();
  const attempt = (index: number) => {
    const trace = new Trace();
    trace.patch = PATCH;
    const services = { farm, metrics, runtime: { name: 'rootfs' } };
    const rollout_id = `${run.run_id}.a__b.c-1.${index}`;
    const log = { debug: () => undefined, warn: () => undefined };
    return {
      ...{ run, trace, services, log, signal: stop.signal, instance: bareInstance() },
      ...{ attempt: 1, claim: `claim${index}`, job: { rollout_id } },
    } as unknown as Task & AttemptContext;
  };
  /** Stores the artifact of an attempt and the verdict in it, as a commit does. */
  const commit = async (task: AttemptContext, report: Report, patch = PATCH) => {
    task.trace.report = report;
    const blob = await encodeArtifact(task.job.rollout_id, report, patch);
    const { artifacts } = farm;
    await noteVerdict(
      task,
      await artifacts.put(task.job.rollout_id, { attempt: 1, claim: task.claim }, blob),
    );
  };
  const ends = async () => {
    const { values } = await metrics.samePatches.get();
    return Object.fromEntries(values.map(({ labels, value }) => [labels.end, value]));
  };
  return { farm, run, attempt, commit, ends, stop };
}

test('rollouts wait for the one that evaluates, and take its verdict', async () => {
  const { attempt, commit, ends } = await setup();
  const [first, ...others] = [0, 1, 2].map(attempt);
  if (!first) throw new Error('no rollout');
  expect(await takeVerdict(first, 'k', 60)).toBeNull();
  const waiting = Promise.all(others.map((one) => takeVerdict(one, 'k', 60)));
  const report = sharedReport({ resolved: true });
  await commit(first, report);
  const taken = { by: first.job.rollout_id, report, log: Buffer.from('log') };
  expect(await waiting).toEqual([taken, taken]);
  expect(await takeVerdict(attempt(3), 'k', 60)).toEqual(taken);
  expect(await takeVerdict(attempt(3), 'other', 60)).toBeNull();
  expect(await ends()).toEqual({ taken: 3 });
});

test('if the first rollout fails or its worker dies, exactly one other evaluates', async () => {
  const { farm, attempt, commit } = await setup();
  await farm.leases.acquire('verdict-k', 'dead worker', 300);
  const [one, two] = [attempt(1), attempt(2)];
  const leads = [one, two].map(async (task) => ({ task, taken: await takeVerdict(task, 'k', 60) }));
  const { task: second } = await Promise.race(leads);
  expect(second.trace.lead).not.toBeNull();
  await endLead(second);
  await expect.poll(() => [one, two].find((task) => task !== second)?.trace.lead ?? null).not.toBeNull();
  const third = [one, two].find((task) => task !== second) ?? one;
  await commit(third, sharedReport({ resolved: false }));
  expect(await takeVerdict(attempt(3), 'k', 60)).toMatchObject({ by: third.job.rollout_id });
});

const refused: [string, Partial<Report>][] = [
  ['timed out', { evaluation: 'timed_out', resolved: false }],
  ['did not start', { evaluation: 'tests_cannot_start', resolved: false }],
  ['was suspicious', { trust: { level: 'suspicious', reasons: ['x'] } }],
  ['was forged', { trust: { level: 'forged', reasons: ['x'] } }],
  ['was unreadable', { unreadable: 'no_markers' }],
];

test.each(refused)('nobody takes or waits for a verdict whose evaluation %s', async (_, change) => {
  const { attempt, commit, ends } = await setup();
  const [first, second] = [attempt(0), attempt(1)];
  await takeVerdict(first, 'k', 60);
  const waiting = takeVerdict(second, 'k', 60);
  const report = sharedReport(change);
  await refuseVerdict(first, report);
  expect(await waiting).toBeNull();
  await commit(first, report);
  expect(await takeVerdict(attempt(2), 'k', 60)).toBeNull();
  expect(await ends()).toEqual({ graded: 2 });
});

test.each([true, false, null])('by default only unresolved verdicts are taken: %s', async (resolved) => {
  const { attempt, commit } = await setup('unresolved');
  const [first, second] = [attempt(0), attempt(1)];
  await takeVerdict(first, 'k', 60);
  const waiting = takeVerdict(second, 'k', 60);
  const report = sharedReport({ resolved });
  await refuseVerdict(first, report);
  await commit(first, report);
  expect((await waiting)?.by ?? null).toBe(resolved === false ? first.job.rollout_id : null);
});

test('a report of another patch, or one that is gone, is not taken', async () => {
  const { attempt, commit, ends, run, farm } = await setup();
  const first = attempt(0);
  await takeVerdict(first, 'k', 60);
  await commit(first, sharedReport({}), `${PATCH}more`);
  expect(await takeVerdict(attempt(1), 'k', 60)).toBeNull();
  const by = { rollout_id: 'r', artifact: `redis:${run.run_id}.gone.0/c/1`, resolved: true };
  await farm.verdicts.note(run, 'lost', by);
  expect(await takeVerdict(attempt(1), 'lost', 60)).toBeNull();
  expect(await ends()).toEqual({ unreadable: 2 });
});

test('a rollout that waits too long is graded by itself; nobody takes verdicts that differ', async () => {
  const { attempt, commit, ends } = await setup();
  const [first, second] = [attempt(0), attempt(1)];
  await takeVerdict(first, 'k', 60);
  expect(await takeVerdict(second, 'k', -61)).toBeNull();
  await commit(first, sharedReport({ resolved: true }));
  expect(await takeVerdict(attempt(2), 'k', 60)).toMatchObject({ by: first.job.rollout_id });
  await commit(second, sharedReport({ resolved: false }));
  expect(await takeVerdict(attempt(3), 'k', 60)).toBeNull();
  expect(await ends()).toEqual({ gave_up: 1, taken: 1, graded: 1 });
});

test('the end of an attempt ends its wait', async () => {
  const { attempt, stop } = await setup();
  await takeVerdict(attempt(0), 'k', 60);
  const waiting = takeVerdict(attempt(1), 'k', 60);
  stop.abort(new Error('drained'));
  await expect(waiting).rejects.toThrow('drained');
});

test('some rollouts are always graded by themselves', async () => {
  const { attempt } = await setup();
  const deps = { network: 'none', fromTree: true, diskBytes: null, shortMemory: null } as const;
  const keyOf = (change: (task: ReturnType<typeof attempt>) => object, more = {}) => {
    const task = attempt(0);
    return samePatchKey({ ...task, ...change(task) }, PATCH, 'conditions', { ...deps, ...more });
  };
  const key = keyOf(() => ({}));
  expect(key).toMatch(/^[\w-]{43}$/);
  const health = (change: object) => () => ({
    instance: bareInstance({ health: [{ ...HEALTH, ...change }] }),
  });
  const withRun = (change: object) => () => ({ run: bareRun({ group_size: 4, ...change }) });
  const { evaluation, agent } = bareRun();
  expect([keyOf(health({})), keyOf(withRun({ group_size: 1, open: true }))]).toEqual([key, key]);
  for (const alone of [
    keyOf(health({ flaky: ['t::one'] })),
    keyOf(health({ gold_resolves: false })),
    keyOf(withRun({ evaluation: { ...evaluation, grade_once: 'off' } })),
    keyOf(withRun({ agent: { ...agent, type: 'patch' } })),
    keyOf(withRun({ agent: { ...agent, type: 'golden' } })),
    keyOf(withRun({ group_size: 1 })),
    keyOf(() => ({}), { network: 'egress' }),
  ])
    expect(alone).toBeNull();
  expect(keyOf(() => ({}), { fromTree: false })).not.toBe(key);
});

const HEALTH = {
  ...{ image_digest: 'sha256:1', grader: 'g', network: 'none' as const, times: 1, gold_resolves: true },
  ...{ noop_resolves: false, gold_seconds: 1, flaky: [], needs_egress: false, checked_at: 'now' },
};
