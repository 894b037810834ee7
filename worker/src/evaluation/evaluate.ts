/**
 * Evaluates one patch in a clean container, by plain exec: it never uses the agent's shell, container or files.
 * The verdict follows from the log by the chosen grader's rules; exit codes come from the runtime.
 */
import { randomBytes } from 'node:crypto';
import {
  addCanaryTest,
  type EvaluationFacts,
  type EvaluationPlan,
  gradeEvaluation,
  isNoPatch,
  withoutTestHooks,
} from '@swefarm/grading';
import { type Instance, poll, type Report, RolloutFailure } from '@swefarm/shared';
import { hasFilledDisk, isCausedByCode, occupiesDisk, type Suspect } from '../sandbox/attribution.ts';
import { diskIsFull, watchDisk } from '../sandbox/disk.ts';
import type { Removals } from '../sandbox/removals.ts';
import type { Container, ContainerState, ExecResult, Runtime } from '../sandbox/runtime.ts';
import type { Threads } from '../threads/pool.ts';
import { applyPatch, PATCH_PATH } from './apply.ts';
import type { EvaluationLock } from './evaluationlock.ts';
import { EVAL_PATH, sealScript, whatChanged } from './evidence.ts';
import { readReport } from './readreport.ts';

/** Share of the time limit: gold that needs less is far from the limit, whatever runs beside it. */
const FAR_FROM_LIMIT = 0.2;
/** 128 + SIGKILL. */
const KILLED = 137;
/** 128 + SIGTERM. */
const TERMINATED = 143;
const CONTAINER_END_MS = 1_000;
/** The harness's own limit on a patch; it does not try to apply a larger one. */
const MAX_PATCH_BYTES = 10 * 1024 * 1024;

export type EvaluationDeps = {
  /** A fresh container of the instance's image. */
  container: () => Promise<Container>;
  /** Takes each container when its tests have ended, and removes it while its log is graded. */
  removals: Removals;
  threads: Threads;
  evaluationLock: EvaluationLock;
  timeoutSeconds: number;
  logLimit: number;
  /** Evaluate an empty patch too (golden, noop and preflight need the status of each test on the bare tree). */
  evaluateEmpty: boolean;
  imageDigest: string;
  network: 'none' | 'egress';
  runtime: Pick<Runtime, 'diskFree'>;
  /** Share of the time limit that gold is known to need; null: not known. */
  goldTimeShare: number | null;
  /** Bytes that a container may write; null: no limit. */
  diskBytes: number | null;
  signal: AbortSignal;
};

/** `startSeconds`: until the clean container was ready; `testsSeconds`: the eval script. Both are of the last run, when it ran twice. */
export type Evaluated = { report: Report; log: Buffer | null; startSeconds: number; testsSeconds: number };

type Ran = {
  facts: Omit<EvaluationFacts, 'log'>;
  /** The node's disk after the run: full, perhaps by another sandbox, or filled by this one. */
  disk: 'free' | 'full' | 'filled';
  log: Buffer | null;
  startSeconds: number;
  testsSeconds: number;
};

/** Throws RolloutFailure evaluation_lost, node_disk, parse_timeout, or whatever the runtime throws at start. */
export async function evaluate(
  instance: Instance,
  plan: EvaluationPlan,
  patch: string | null,
  deps: EvaluationDeps,
): Promise<Evaluated> {
  const skipped = skipReason(patch, plan.grader, deps.evaluateEmpty);
  if (skipped) {
    const facts = { ...noRun(deps), patch_state: skipped, log: null };
    const report = gradeEvaluation(instance, plan, facts, patch ?? '');
    return { report, log: null, startSeconds: 0, testsSeconds: 0 };
  }
  deps.threads.expect();
  const run = () => runOnce(plan, patch ?? '', deps);
  let ran = await deps.evaluationLock.shared(run, deps.signal);
  // Gold is far from the limit here, so no slow neighbour could make a comparable patch meet it.
  const hangs = deps.goldTimeShare !== null && deps.goldTimeShare < FAR_FROM_LIMIT;
  if (ran.facts.timed_out && !hangs) ran = await deps.evaluationLock.alone(run, deps.signal);
  let report = await grade(instance, plan, patch ?? '', ran, deps);
  if (ran.disk === 'full' && !report.resolved)
    throw new RolloutFailure('node_disk', 'the disk was full at the end of the tests');
  if (ran.disk === 'filled' && !report.resolved) {
    ran.facts.sandbox_killed = true;
    report = await grade(instance, plan, patch ?? '', ran, deps);
  }
  if (report.resolved && report.trust.level === 'suspicious') {
    await confirm(instance, plan, patch ?? '', report, deps);
  }
  return { report, log: ran.log, startSeconds: ran.startSeconds, testsSeconds: ran.testsSeconds };
}

/**
 * Evaluates a resolved patch that may decide tests itself a second time: without the means it brings in its own files, and
 * beside a test that must fail. The official verdict stays; `report.trust` holds the findings.
 */
async function confirm(
  instance: Instance,
  plan: EvaluationPlan,
  patch: string,
  report: Report,
  deps: EvaluationDeps,
): Promise<void> {
  const again = async (other: EvaluationPlan, tried: string): Promise<Report | null> => {
    const ran = await deps.evaluationLock.shared(() => runOnce(other, tried, deps), deps.signal);
    return ran.facts.timed_out ? null : grade(instance, other, tried, ran, deps);
  };
  const forged = (reason: string): void => {
    report.trust.level = 'forged';
    report.trust.reasons.push(reason);
  };
  const rest = withoutTestHooks(patch, instance);
  if (rest && (await again(plan, rest.patch))?.resolved === false) {
    forged(`the tests do not pass without what the patch brings to decide them: ${rest.files.join(', ')}`);
    return;
  }
  const trap = addCanaryTest(plan, instance, `test_${randomBytes(6).toString('hex')}`);
  if (!trap) return;
  const seen = await again(trap.plan, patch);
  if (!seen || trap.fails(seen)) return;
  const gold = await again(trap.plan, instance.patch);
  if (gold && trap.fails(gold))
    forged('a test made to fail does not fail beside the patch, and does beside gold');
}

function skipReason(
  patch: string | null,
  grader: EvaluationPlan['grader'],
  evaluateEmpty: boolean,
): 'none' | 'empty' | 'too_large' | null {
  if (patch === null) return 'none';
  if (isNoPatch(patch, grader)) return evaluateEmpty ? null : 'empty';
  return Buffer.byteLength(patch) > MAX_PATCH_BYTES ? 'too_large' : null;
}

const noRun = (deps: EvaluationDeps): Omit<EvaluationFacts, 'log'> => ({
  patch_state: 'none',
  applied_with: null,
  timed_out: false,
  timeout_seconds: deps.timeoutSeconds,
  exit_code: null,
  sandbox_killed: false,
  image_digest: deps.imageDigest,
  network: deps.network,
});

async function runOnce(plan: EvaluationPlan, patch: string, deps: EvaluationDeps): Promise<Ran> {
  const began = performance.now();
  const container = await deps.container();
  try {
    const suspect = { ...deps, container, fresh: deps.container };
    using disk = watchDisk(deps.runtime, () => occupiesDisk(suspect));
    const ran = await runIn(suspect, secondsSince(began), plan, patch, deps);
    // A sandbox that reaches its own disk limit causes its own failure.
    const full = !ran.facts.sandbox_killed && (await diskIsFull(deps.runtime));
    if (full) return { ...ran, disk: (await hasFilledDisk(suspect)) ? 'filled' : 'full' };
    return { ...ran, disk: !ran.facts.sandbox_killed && (await disk.wasFull()) ? 'full' : 'free' };
  } finally {
    await deps.removals.remove(container);
  }
}

async function runIn(
  suspect: Suspect,
  startSeconds: number,
  plan: EvaluationPlan,
  patch: string,
  deps: EvaluationDeps,
): Promise<Omit<Ran, 'disk'>> {
  const { container } = suspect;
  const facts = noRun(deps);
  const script = await putFiles(container, plan, patch, deps.signal);
  const seal = await sealScript(container, script);
  if (isNoPatch(patch, plan.grader)) {
    facts.patch_state = 'empty';
  } else {
    const applied = await applyPatch(container, plan, deps.signal);
    if (applied.applied_with === null) {
      const log = Buffer.from(applied.output);
      return { facts: { ...facts, patch_state: 'not_applied' }, log, startSeconds, testsSeconds: 0 };
    }
    facts.patch_state = 'applied';
    facts.applied_with = applied.applied_with;
  }
  const from = performance.now();
  const result = await runEvalScript(suspect, script.path, deps);
  const testsSeconds = secondsSince(from);
  if (result === null) {
    const log = Buffer.alloc(0);
    return { facts: { ...facts, sandbox_killed: true }, log, startSeconds, testsSeconds };
  }
  facts.timed_out = result.timedOut;
  facts.exit_code = result.exitCode;
  // On some engines a container killed during its tests reports an exit code of its own.
  const state = result.timedOut ? 'running' : await stateAfter(container, result.exitCode);
  facts.sandbox_killed = state === 'own_limit';
  if (state === 'exited' || state === 'gone') {
    throw new RolloutFailure(
      'evaluation_lost',
      `the evaluation container is ${state} and not by its own limit`,
    );
  }
  if (result.exitCode !== null) Object.assign(facts, await whatChanged(container, seal, deps.signal));
  return { facts, log: result.output, startSeconds, testsSeconds };
}

/** A scheduler sends TERM to all processes of a job: the container may end a moment after its tests. */
async function stateAfter(container: Container, exitCode: number | null): Promise<ContainerState> {
  if (exitCode === null || exitCode === KILLED) return container.state();
  if (exitCode !== TERMINATED) return 'running';
  const look = async (): Promise<ContainerState | null> => {
    const state = await container.state();
    return state === 'running' ? null : state;
  };
  return (await poll(look, { pauseMs: 50, withinMs: CONTAINER_END_MS })) ?? 'running';
}

const secondsSince = (from: number): number => (performance.now() - from) / 1000;

/** Writes patch and eval script in one call, because each call costs a round trip to the engine. */
async function putFiles(
  container: Container,
  plan: EvaluationPlan,
  patch: string,
  signal: AbortSignal,
): Promise<{ path: string; content: Buffer }> {
  // The `host` dry run has no root of its own: its container is a folder elsewhere.
  const path = container.end ? EVAL_PATH : `${container.workdir}/../eval.sh`;
  const content = Buffer.from(plan.evalScript.replaceAll('/testbed', container.workdir));
  await container.putFiles(
    [
      { path: PATCH_PATH, content: Buffer.from(patch, 'utf8') },
      { path, content, mode: 0o755 },
    ],
    signal,
  );
  return { path, content };
}

/** Null when the script broke its own container. */
async function runEvalScript(
  suspect: Suspect,
  path: string,
  deps: EvaluationDeps,
): Promise<ExecResult | null> {
  const { container } = suspect;
  try {
    return await container.exec(['/bin/bash', path], {
      cwd: container.workdir,
      timeoutMs: deps.timeoutSeconds * 1000,
      maxOutputBytes: deps.logLimit,
      signal: deps.signal,
    });
  } catch (error) {
    if (await isCausedByCode(error, suspect)) return null;
    throw error;
  }
}

const grade = (
  instance: Instance,
  plan: EvaluationPlan,
  patch: string,
  { facts, log }: Ran,
  { threads }: EvaluationDeps,
): Promise<Report> => readReport({ instance, plan, patch, facts, log }, threads);
