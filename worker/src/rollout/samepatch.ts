/**
 * Grades a patch of a run once. The first rollout of an instance that evaluates a patch stores where its report is; rollouts with the same
 * patch, byte for byte, and the same conditions wait for that report and take it (`graded_by`). Each keeps its own facts about its agent.
 *
 * A rollout takes only clean, complete verdicts of an evaluation without network, and none of an instance with tests that are known to
 * flake. By default it takes only unresolved ones: a patch that passes with probability p, and else hangs or prints a suspicious log with
 * probability u, would pass with p(1 + u), because nobody takes the verdict of its failure.
 */
import { createHash } from 'node:crypto';
import {
  errorMessage,
  type Instance,
  isSandboxAgent,
  type Report,
  type RunRecord,
  sleep,
  startedGroup,
} from '@swefarm/shared';
import type { EvaluationDeps } from '../evaluation/evaluate.ts';
import { takeLease } from '../evaluation/lease.ts';
import { abortOf } from './active.ts';
import type { AttemptContext, Task } from './context.ts';
import { retryUntilAnswered, untilAborted } from './untilanswered.ts';

/** Verdict of a rollout with the same patch. */
type Taken = { by: string; report: Report; log: Buffer | null };

const POLL_MS = 1_000;
/** Milliseconds beyond the tests' time limit after which this rollout stops waiting for the verdict of another rollout. */
const PATIENCE_MS = 60_000;

/** Returns the hash of a patch and the conditions of its evaluation; null: the rollout is graded by itself. */
export function samePatchKey(
  { run, instance, services }: Pick<Task, 'run' | 'instance' | 'services'>,
  patch: string | null,
  conditions: string,
  deps: Pick<EvaluationDeps, 'network' | 'fromTree' | 'diskBytes' | 'shortMemory'>,
): string | null {
  const { network, fromTree, diskBytes, shortMemory } = deps;
  if (patch === null || network !== 'none' || !isGradedOnce(run) || isDisputed(instance)) return null;
  const text = JSON.stringify([conditions, services.runtime.name, fromTree, diskBytes, shortMemory, patch]);
  return createHash('sha256').update(text).digest('base64url');
}

/**
 * Agents without turns are graded each time, because `swefarm health` and `eval` compare evaluations of one patch. With weights of its
 * parts the reward of an unresolved patch may be high, so that only `on` shares it.
 */
const isGradedOnce = (run: RunRecord): boolean =>
  (run.evaluation.grade_once === 'on' ||
    (run.evaluation.grade_once === 'unresolved' && run.reward.weights === null)) &&
  isSandboxAgent(run.agent.type) &&
  (run.open || startedGroup(run) + run.refills > 1);

const isDisputed = ({ health }: Pick<Instance, 'health'>): boolean =>
  health?.some(({ flaky, gold_resolves }) => flaky.length > 0 || !gold_resolves) === true;

/**
 * Returns the verdict of a rollout with the same patch, after waiting for it if that rollout is being graded. Null: this rollout is graded
 * by itself; `task.trace.lead` is then set if its verdict is stored.
 */
export async function takeVerdict(task: Task, key: string, timeoutSeconds: number): Promise<Taken | null> {
  const { run, signal, services, trace } = task;
  const { farm, metrics } = services;
  const ask = <T>(call: () => Promise<T>): Promise<T> =>
    retryUntilAnswered('same patch', call, untilAborted(task));
  const read = () => ask(() => farm.verdicts.read(run.run_id, key));
  const holder = `${task.claim}-${task.attempt}`;
  const giveUpAt = performance.now() + 1000 * timeoutSeconds + PATIENCE_MS;
  for (;;) {
    signal.throwIfAborted();
    const known = await read();
    if (known) {
      const taken = known.by && (await readVerdict(task, known.by, trace.patch));
      metrics.samePatches.inc({ end: taken ? 'taken' : known.by ? 'unreadable' : 'graded' });
      // The verdict of this rollout is compared with the one that it could not read.
      if (!taken && known.by) trace.lead = { key, lease: null };
      return taken;
    }
    const lease = await takeLease(`verdict-${key}`, { leases: farm.leases, holder, ask, signal });
    if (lease) {
      trace.lead = { key, lease };
      // Another worker may have stored a verdict before this one took the lease.
      if ((await read()) === null) return null;
      await endLead(task);
    } else if (performance.now() > giveUpAt) {
      metrics.samePatches.inc({ end: 'gave_up' });
      trace.lead = { key, lease: null };
      return null;
    } else await sleep(POLL_MS, signal);
  }
}

/** Returns the report of a rollout; null if its artifact is gone or of another patch. */
async function readVerdict(
  task: Task,
  { rollout_id: by, artifact }: { rollout_id: string; artifact: string },
  patch: string | null,
): Promise<Taken | null> {
  try {
    const { artifacts } = task.services.farm;
    const content = await retryUntilAnswered(
      'report of the same patch',
      () => artifacts.read(artifact),
      untilAborted(task),
    );
    const { report = null, test_log: log = null } = content ?? {};
    if (content?.patch !== patch || !report || !isShareable(report, task)) return null;
    return { by, report, log: log === null ? null : Buffer.from(log) };
  } catch (error) {
    if (error === abortOf(task.signal)) throw error;
    task.log.debug({ by, err: errorMessage(error) }, 'report of the same patch not read');
    return null;
  }
}

const isShareable = (
  { evaluation, patch_state, trust, unreadable, resolved }: Report,
  { run }: Pick<Task, 'run'>,
): boolean =>
  (resolved === false || run.evaluation.grade_once === 'on') &&
  evaluation === 'completed' &&
  patch_state === 'applied' &&
  trust.level === 'clean' &&
  unreadable === undefined;

/** Lets waiting rollouts grade themselves at once if the verdict of this rollout is not for others. */
export async function refuseVerdict(task: Task, report: Report): Promise<void> {
  if (!isShareable(report, task)) await noteVerdict(task, null);
}

/** Stores that the committed result of this attempt has the verdict on its patch. @param artifact null: no rollout takes the verdict */
export async function noteVerdict(
  { trace, run, job, services, log }: Pick<AttemptContext, 'trace' | 'run' | 'job' | 'services' | 'log'>,
  artifact: string | null,
): Promise<void> {
  if (!trace.lead) return;
  const { rollout_id } = job;
  const by = artifact === null ? null : { rollout_id, artifact, resolved: trace.report?.resolved ?? null };
  await services.farm.verdicts.note(run, trace.lead.key, by).catch((error: unknown) => {
    log.debug({ err: errorMessage(error) }, 'verdict for rollouts with the same patch not stored');
  });
  await endLead({ trace });
}

/** Lets another rollout evaluate the patch. */
export async function endLead({ trace }: Pick<AttemptContext, 'trace'>): Promise<void> {
  const { lead } = trace;
  trace.lead = null;
  await lead?.lease?.[Symbol.asyncDispose]();
}
