/** Runs a plan once in a clean container: applies the patch, runs the script, and reads the files that the script left. */
import { isNoPatch } from '@swefarm/grading';
import {
  type Container,
  describeStep,
  diskIsFull,
  type ExecOptions,
  hasFilledDisk,
  isCausedByCode,
  lossOr,
  occupiesDisk,
  requireOwnKills,
  requireSteps,
  runSteps,
  type Suspect,
  watchDisk,
} from '@swefarm/sandbox';
import { type HarborTask, type InstancePlan, RolloutFailure } from '@swefarm/shared';
import { applyPatch, mayLackFiles, withoutRecreated } from './apply.ts';
import { requireRunning, stateAfter } from './endstate.ts';
import { EVAL_PATH, filesLeft, type Seal, sealScript, TESTBED, whatChanged } from './evidence.ts';
import { prepareTask, separateWork } from './taskrun.ts';
import type { CleanRunDeps, Ran, Work } from './work.ts';

/** Exit code of a process killed by SIGKILL (128 + 9). */
const KILLED = 137;

/** Returns the seconds that the script may take: the smaller one of the harness's limit and the run's. */
export const timeoutOf = (plan: Pick<InstancePlan, 'timeout'>, runSeconds: number): number =>
  Math.min(plan.timeout ?? runSeconds, runSeconds);

/** Returns the facts of an evaluation in which nothing ran. */
export const noRun = (plan: InstancePlan, deps: CleanRunDeps): Ran['facts'] => ({
  patch_state: 'none',
  applied_with: null,
  timed_out: false,
  timeout_seconds: timeoutOf(plan, deps.timeoutSeconds),
  exit_code: null,
  sandbox_killed: false,
  image_digest: deps.imageDigest,
  network: deps.network,
});

/** Throws RolloutFailure `evaluation_lost`, `setup_failed` or `node_memory`, and the errors of the runtime. */
export async function runOnce(given: Work, deps: CleanRunDeps): Promise<Ran> {
  const work = { ...given, ...(await separateWork(given, deps)) };
  const began = performance.now();
  const container = await deps.container();
  try {
    const suspect = { ...deps, container, fresh: deps.bare ?? deps.container };
    using disk = watchDisk(deps.runtime, () => occupiesDisk(suspect));
    const ran = await runIn(suspect, secondsSince(began), work, deps);
    // If the sandbox reached a limit of its own, the node's disk is not the cause of the failure.
    const full = !ran.facts.sandbox_killed && (await diskIsFull(deps.runtime));
    if (full) return { ...ran, disk: (await hasFilledDisk(suspect)) ? 'filled' : 'full' };
    return { ...ran, disk: !ran.facts.sandbox_killed && (await disk.wasFull()) ? 'full' : 'free' };
  } finally {
    await deps.removals.remove(container);
  }
}

/** Throws RolloutFailure `node_memory` when the tests were killed for memory and might run on a node with more memory. */
async function requireFed(container: Container, { exit_code }: Ran['facts'], { shortMemory }: CleanRunDeps) {
  if (exit_code !== 0) await requireOwnKills(container);
  if (shortMemory === null) return;
  const kills = await container.oomKills().catch(() => null);
  const isOver = (await container.state().catch(() => null)) === 'own_limit';
  // If the runtime cannot count kills, the exit code of a killed script is the only sign.
  if (isOver || (kills === null ? exit_code === KILLED : kills > 0))
    throw new RolloutFailure('node_memory', `its tests were killed for memory: ${shortMemory}`);
}

async function runIn(suspect: Suspect, startSeconds: number, given: Work, deps: CleanRunDeps) {
  const { container } = suspect;
  const { plan, instance } = given;
  const { harbor } = instance;
  const ran: Omit<Ran, 'disk'> = { facts: noRun(plan, deps), log: null, startSeconds, testsSeconds: 0 };
  const run = harbor
    ? () => verifyTask(container, harbor, given, ran, deps)
    : await preparePatch(container, given, ran, deps);
  try {
    await run();
  } catch (error) {
    if (!(await isCausedByCode(error, suspect))) throw await lossOr(error, container, 'evaluation_lost');
    ran.facts.sandbox_killed = true;
    // If the container broke before the patch was applied, the patch is larger than the container's memory.
    if (ran.facts.patch_state === 'none') ran.facts.patch_state = 'too_large';
    else ran.log ??= Buffer.alloc(0);
    await requireFed(container, ran.facts, deps);
  }
  return ran;
}

/** Writes the patch and the script, and runs the steps before the patch. Returns a function that applies the patch and runs the tests. */
async function preparePatch(container: Container, given: Work, ran: Omit<Ran, 'disk'>, deps: CleanRunDeps) {
  const { plan, instance } = given;
  const differs = deps.fromTree && mayLackFiles(instance.environment);
  const patch = differs ? await withoutRecreated(container, given.patch, deps.signal) : given.patch;
  const work = { ...given, patch };
  const seal = await sealScript(container, await putFiles(container, work, deps.signal));
  await requireSteps(container, 'before', plan.before, deps.signal);
  return () => runPatched(container, work, ran, seal, deps);
}

/** Runs the verifier of a Harbor task. */
async function verifyTask(
  container: Container,
  task: HarborTask,
  work: Work,
  ran: Omit<Ran, 'disk'>,
  deps: CleanRunDeps,
): Promise<void> {
  const verifier = await prepareTask(container, task, work, ran, deps);
  if ('blocked' in verifier) {
    requireRunning(await container.state());
    ran.facts.blocked_by = verifier.blocked;
    ran.log = Buffer.alloc(0);
    return;
  }
  await runScript(container, ran, work.plan, null, deps, {
    line: ['/bin/bash', '-c', work.plan.script],
    user: verifier.user,
  });
}

/**
 * Applies the patch, runs the script and reads the files that the script left. Writes each fact to `ran` at once, because the patch or its
 * code can make every call fail; {@link isCausedByCode} decides about each failure.
 */
async function runPatched(
  container: Container,
  work: Work,
  ran: Omit<Ran, 'disk'>,
  seal: Seal,
  deps: CleanRunDeps,
): Promise<void> {
  const { facts } = ran;
  const { plan } = work;
  const { signal } = deps;
  const printed = await applyTo(facts, container, work, deps);
  if (printed !== null) {
    ran.log = Buffer.from(printed);
    return;
  }
  const blocked = await runSteps(container, plan.after, signal);
  if (blocked !== null) {
    requireRunning(await container.state());
    facts.blocked_by = describeStep('after', 'evaluation', blocked);
    ran.log = Buffer.from(blocked.output);
    return;
  }
  await runScript(container, ran, plan, seal, deps, {
    line: ['/bin/bash', seal.path],
    // `last` requires that no untrusted code has run before. Steps after the patch may have run code of the patch.
    ...(plan.after.length === 0 ? { standing: 'last' as const } : {}),
  });
}

async function runScript(
  container: Container,
  ran: Omit<Ran, 'disk'>,
  plan: InstancePlan,
  seal: Seal | null,
  deps: CleanRunDeps,
  { line, ...how }: { line: readonly string[] } & Pick<ExecOptions, 'user' | 'standing'>,
): Promise<void> {
  const { signal } = deps;
  const { facts } = ran;
  const from = performance.now();
  const running = container.exec(line, {
    cwd: container.workdir,
    timeoutMs: timeoutOf(plan, deps.timeoutSeconds) * 1000,
    maxOutputBytes: deps.logLimit,
    ...how,
    signal,
  });
  const result = await running.finally(() => {
    ran.testsSeconds = secondsSince(from);
  });
  ran.log = result.output;
  if (result.truncated) facts.log_cut = true;
  facts.timed_out = result.timedOut;
  facts.exit_code = result.exitCode;
  requireRunning(await stateAfter(container, result));
  await requireFed(container, facts, deps);
  if (result.exitCode === null) return;
  facts.files = await filesLeft(container, plan, deps);
  Object.assign(facts, await whatChanged(container, seal, signal, facts));
}

/** Returns null when the tests run next; else the output of the commands that failed to apply the patch. */
async function applyTo(
  facts: Ran['facts'],
  container: Container,
  { plan, patch }: Work,
  deps: CleanRunDeps,
): Promise<string | null> {
  if (isNoPatch(patch, plan)) {
    facts.patch_state = 'empty';
    return null;
  }
  const { applied, applied_with, output } = await applyPatch(container, plan, {
    taken: deps.fromTree ? patch : null,
    signal: deps.signal,
  });
  facts.patch_state = applied ? 'applied' : 'not_applied';
  facts.applied_with = applied_with;
  if (applied) return null;
  facts.ran_unapplied = plan.unapplied === 'tests_run';
  return facts.ran_unapplied ? null : output;
}

const secondsSince = (from: number): number => (performance.now() - from) / 1000;

/** Writes patch and eval script in one call, to save a round trip to the engine. */
async function putFiles(container: Container, { instance, plan, patch }: Work, signal: AbortSignal) {
  // A container of the runtime `host` is a folder without a root file system of its own.
  const path = container.end ? EVAL_PATH : `${container.workdir}/../eval.sh`;
  const named = instance.plan ? container.spec.workdir : TESTBED;
  const content = Buffer.from(plan.script.replaceAll(named, container.workdir));
  await container.putFiles(
    [
      { path: plan.patch_path, content: Buffer.from(patch, 'utf8') },
      { path, content, mode: 0o755 },
    ],
    signal,
  );
  return { path, content };
}
