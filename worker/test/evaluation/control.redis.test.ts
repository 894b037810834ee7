/** Control evaluations on a real Redis: one for the whole farm, and none from an evaluation that infrastructure failed. */

import { planEvaluation } from '@swefarm/grading';
import { newId, type Report, RolloutFailure, silentLog, sleep } from '@swefarm/shared';
import { bareInstance, printingScript } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { type ControlDeps, createControl, evidenceOf } from '../../src/evaluation/control.ts';
import { createWorkerMetrics } from '../../src/metrics/workermetrics.ts';
import { scene as openFarm } from '../maintenance/farm.ts';

const GOLD = 'diff --git a/gold b/gold\n';
const row = bareInstance({
  eval_script: printingScript("w('')"),
  log_parser: 'parse_log_pytest',
  patch: GOLD,
});
const plan = planEvaluation(row);
type End = Report['evaluation'];

/** A farm; `ends`: how evaluations of the untouched tree and of gold end. `control()` creates the control of one more attempt. */
async function scene(ends: { untouched: End; gold?: End }, seconds = 3) {
  const { farm } = await openFarm();
  const metrics = createWorkerMetrics();
  const ran: string[] = [];
  const conditions = newId();
  const control = (over: Partial<ControlDeps> = {}, instance = row) =>
    createControl(instance, plan, conditions, {
      ...{ controls: farm.controls, leases: farm.leases, holder: newId(), ask: (call) => call() },
      async run(patch) {
        ran.push(patch === GOLD ? 'gold' : 'untouched');
        await sleep(50);
        const evaluation = patch === GOLD ? (ends.gold ?? 'completed') : ends.untouched;
        return { report: { evaluation } as Report, testsSeconds: seconds };
      },
      count: (labels) => metrics.controlEvaluations.inc(labels),
      ...{ timeoutSeconds: 60, log: silentLog(), signal: new AbortController().signal },
      ...over,
    });
  return { farm, ran, control, conditions, metrics };
}

test('sixteen attempts in parallel evaluate the untouched tree once', async () => {
  const { ran, control } = await scene({ untouched: 'completed' });
  const all = await Promise.all(Array.from({ length: 16 }, () => control().testsStart()));
  expect(all).toEqual(Array(16).fill(true));
  expect(ran).toEqual(['untouched']);
});

test('gold is evaluated if the tests of the untouched tree do not start', async () => {
  const { ran, control, metrics } = await scene({ untouched: 'tests_cannot_start' });
  expect(await control().testsStart()).toBe(true);
  expect(await control().testsStart()).toBe(true);
  expect(ran).toEqual(['untouched', 'gold']);
  const text = await metrics.registry.getSingleMetricAsString('swefarm_control_evaluations_total');
  expect(text).toContain('tree="untouched",outcome="not_started"} 1');
  expect(text).toContain('tree="gold",outcome="started"} 1');
});

test('tests that start on neither tree are the fault of the instance, for the whole farm', async () => {
  const { ran, control } = await scene({ untouched: 'tests_cannot_start', gold: 'timed_out' });
  expect([await control().testsStart(), await control().testsStart()]).toEqual([false, false]);
  expect(ran).toEqual(['untouched', 'gold']);
  // The same evaluation of gold shows that the limit is too small.
  expect(await control().timeShare()).toEqual({ share: 1, isGold: true });
  expect(ran).toHaveLength(2);
});

test('without gold, an untouched tree that does not start or hangs shows nothing', async () => {
  const { control } = await scene({ untouched: 'timed_out' });
  const blind = bareInstance({ ...row, patch: '' });
  expect(await control({}, blind).testsStart()).toBeNull();
  expect(await control({}, blind).timeShare()).toEqual({ share: null, isGold: false });
});

test('the time share is that of gold, not of the untouched tree', async () => {
  const { ran, control } = await scene({ untouched: 'timed_out' }, 6);
  expect(await control().timeShare()).toEqual({ share: 0.1, isGold: true });
  expect(ran).toEqual(['gold']);
});

test('a start in another rollout needs no control, and its time does not count', async () => {
  const { farm, ran, control, conditions } = await scene({ untouched: 'completed' });
  await farm.controls.note(conditions, 'sibling', { starts: true, seconds: null });
  expect(await control().testsStart()).toBe(true);
  expect(ran).toEqual([]);
  await control().timeShare();
  expect(ran).toEqual(['gold']);
});

test('an evaluation that infrastructure failed is no evidence and is repeated', async () => {
  const { farm, ran, control, conditions } = await scene({ untouched: 'completed' });
  const failing = control({ run: () => Promise.reject(new RolloutFailure('sandbox_lost', 'gone')) });
  await expect(failing.testsStart()).rejects.toMatchObject({ failureClass: 'evaluation_lost' });
  expect(await farm.controls.read(conditions)).toEqual({});
  expect(await control().testsStart()).toBe(true);
  expect(ran).toEqual(['untouched']);
});

test("another attempt takes over a dead attempt's lease, and an aborted one stops waiting", async () => {
  const { farm, ran, control, conditions } = await scene({ untouched: 'completed' });
  await farm.leases.acquire(`control-${conditions}`, 'dead', 1_500);
  const stop = new AbortController();
  const waiting = control({ signal: stop.signal }).testsStart();
  const reason = new Error('drained');
  stop.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  expect(ran).toEqual([]);
  expect(await control().testsStart()).toBe(true);
  expect(ran).toEqual(['untouched']);
});

test('a living attempt renews its lease', async () => {
  const { ran, control } = await scene({ untouched: 'completed' });
  const slow = control({
    leaseMs: 600,
    async run() {
      ran.push('slow');
      await sleep(2_500);
      return { report: { evaluation: 'completed' } as Report, testsSeconds: 1 };
    },
  });
  const first = slow.testsStart();
  await expect.poll(() => ran).toEqual(['slow']);
  expect(await Promise.all([first, control().testsStart()])).toEqual([true, true]);
  expect(ran).toEqual(['slow']);
});

test('evidence that tests did not start expires after an hour, a start does not', async () => {
  const { farm, conditions } = await scene({ untouched: 'completed' });
  await farm.controls.note(conditions, 'untouched', { starts: false, seconds: null });
  await farm.controls.note(conditions, 'gold', { starts: true, seconds: 2 });
  expect(Object.keys(await farm.controls.read(conditions)).sort()).toEqual(['gold', 'untouched']);
  const now = farm.clock.now.bind(farm.clock);
  Object.assign(farm.clock, { now: () => now() + 3_600_001 });
  expect(Object.keys(await farm.controls.read(conditions))).toEqual(['gold']);
});

test('of a sibling only a clean start counts', () => {
  const seen = (evaluation: End, level: Report['trust']['level'], tree: 'sibling' | 'gold') =>
    evidenceOf({ evaluation, trust: { level, reasons: [] } }, tree, 3, 60);
  expect(seen('completed', 'clean', 'sibling')).toEqual({ starts: true, seconds: null });
  expect(seen('completed', 'suspicious', 'sibling')).toBeNull();
  expect(seen('completed', 'forged', 'sibling')).toBeNull();
  expect(seen('tests_cannot_start', 'clean', 'sibling')).toBeNull();
  expect(seen('timed_out', 'clean', 'sibling')).toBeNull();
  expect(seen('completed', 'suspicious', 'gold')).toEqual({ starts: true, seconds: 3 });
  expect(seen('timed_out', 'clean', 'gold')).toEqual({ starts: false, seconds: 60 });
  expect(seen('sandbox_killed', 'clean', 'gold')).toBeNull();
});
