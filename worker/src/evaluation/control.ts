/**
 * Determines whether a patch or its instance is at fault when tests did not start, were unreadable or timed out. Uses other evaluations
 * under the same conditions. Without them, one worker of the farm evaluates the untouched tree, and then gold if the tests of that tree do
 * not start either. After a timeout it evaluates gold, or the untouched tree if the row has no gold.
 */
import { createHash } from 'node:crypto';
import { untouchedPatch } from '@swefarm/grading';
import {
  type Controls,
  type ControlTree,
  errorMessage,
  type Instance,
  type InstancePlan,
  type KnownControls,
  type Report,
  type RewardFacts,
  RolloutFailure,
  sleep,
} from '@swefarm/shared';
import type { Logger } from 'pino';
import { type LeaseDeps, takeLease } from './lease.ts';

export type Control = ReturnType<typeof createControl>;

type ControlOutcome = 'started' | 'not_started' | 'timed_out' | 'lost';

export type ControlDeps = LeaseDeps & {
  controls: Controls;
  run: (patch: string) => Promise<{ report: Report; testsSeconds: number }>;
  timeoutSeconds: number;
  count: (labels: { tree: ControlTree; outcome: ControlOutcome }) => void;
  log: Pick<Logger, 'info'>;
};

const POLL_MS = 1_000;
/** Maximum wait for another worker, in time limits: 2 trees, 2 evaluations of each, all repeated once if that worker dies. */
const PATIENCE_LIMITS = 8;
const PATIENCE_MS = 600_000;

/** Hashes everything that decides whether the tests of an instance start, and how long they take. */
export const conditionsOf = (given: {
  instance: Pick<Instance, 'instance_id' | 'patch' | 'environment' | 'harbor'>;
  plan: InstancePlan;
  imageDigest: string;
  network: string;
  timeoutSeconds: number;
  limits: object;
  env: object;
}): string => {
  const { instance, ...rest } = given;
  const { instance_id, patch, environment, harbor } = instance;
  const text = JSON.stringify([
    instance_id,
    patch,
    environment ?? null,
    rest,
    ...(harbor ? [harbor.digest, harbor.solution_env, harbor.verifier.env] : []),
  ]);
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
};

type Next<T> = { answer: T } | { evaluate: Exclude<ControlTree, 'sibling'> };

export function createControl(
  instance: Pick<Instance, 'patch'>,
  plan: InstancePlan,
  conditions: string,
  deps: ControlDeps,
) {
  const hasGold = instance.patch.trim() !== '';
  const patches = { untouched: untouchedPatch(plan), gold: instance.patch };

  const untilKnown = async <T>(decide: (known: KnownControls) => Next<T>): Promise<T> => {
    const { controls, signal } = deps;
    const giveUpAt = performance.now() + PATIENCE_LIMITS * deps.timeoutSeconds * 1000 + PATIENCE_MS;
    for (;;) {
      signal.throwIfAborted();
      const next = decide(await deps.ask(() => controls.read(conditions)));
      if ('answer' in next) return next.answer;
      await using lease = await takeLease(`control-${conditions}`, deps);
      if (lease === null) {
        if (performance.now() > giveUpAt)
          throw new RolloutFailure('evaluation_lost', 'the control evaluation by another worker did not end');
        await sleep(POLL_MS, signal);
        continue;
      }
      // Another worker may have stored evidence before this one took the lease.
      const now = decide(await deps.ask(() => controls.read(conditions)));
      if ('answer' in now) return now.answer;
      const { report, testsSeconds } = await evaluateTree(now.evaluate, patches[now.evaluate], deps);
      const seen = evidenceIn(report, now.evaluate, testsSeconds, deps.timeoutSeconds);
      await deps.ask(() => controls.note(conditions, now.evaluate, seen));
    }
  };

  return {
    /** Returns whether the tests start without this patch; null: not on the untouched tree, and the row has no gold. */
    testsStart: () =>
      untilKnown<boolean | null>((known) => {
        if (Object.values(known).some(({ starts }) => starts)) return { answer: true };
        if (!known.untouched) return { evaluate: 'untouched' };
        if (!hasGold) return { answer: null };
        return known.gold ? { answer: false } : { evaluate: 'gold' };
      }),
    /** Returns the share of the time limit that gold needs, or the untouched tree if the row has no gold (`isGold`); null: not known. */
    timeShare: () =>
      untilKnown<{ share: number | null; isGold: boolean }>((known) => {
        const tree = hasGold ? 'gold' : 'untouched';
        const seen = known[tree];
        if (!seen) return { evaluate: tree };
        const share = seen.seconds === null ? null : seen.seconds / deps.timeoutSeconds;
        return { answer: { share, isGold: hasGold } };
      }),
  };
}

/** Evaluates one tree. Throws RolloutFailure `evaluation_lost` when the infrastructure failed. */
async function evaluateTree(tree: ControlTree, patch: string, { run, count, log, signal }: ControlDeps) {
  try {
    const ran = await run(patch);
    const { evaluation } = ran.report;
    const outcome =
      evaluation === 'completed' ? 'started' : evaluation === 'timed_out' ? 'timed_out' : 'not_started';
    count({ tree, outcome });
    log.info({ tree, outcome, seconds: ran.testsSeconds }, 'control evaluation ended');
    return ran;
  } catch (error) {
    signal.throwIfAborted();
    count({ tree, outcome: 'lost' });
    if (!(error instanceof RolloutFailure)) throw error;
    const what = tree === 'gold' ? 'gold' : 'the untouched tree';
    const message = `the control evaluation of ${what} failed: ${error.failureClass}: ${errorMessage(error)}`;
    throw new RolloutFailure('evaluation_lost', message, { cause: error });
  }
}

function evidenceIn(
  { evaluation }: Pick<Report, 'evaluation'>,
  tree: ControlTree,
  testsSeconds: number,
  timeoutSeconds: number,
): { starts: boolean; seconds: number | null } {
  const starts = evaluation === 'completed';
  if (tree === 'sibling') return { starts, seconds: null };
  if (starts) return { starts, seconds: testsSeconds };
  // The untouched tree may contain an endless loop that gold fixes, so only a timeout of gold shows that the limit is too small.
  const atLimit = evaluation === 'timed_out' && tree === 'gold';
  return { starts, seconds: atLimit ? timeoutSeconds : null };
}

/**
 * Returns the evidence that an evaluation of any patch adds; null: none. A patch that is neither gold nor empty (`sibling`) counts only if
 * its evaluation is clean and completed, because the patch may have printed the outcomes itself.
 */
export function evidenceOf(
  report: Pick<Report, 'evaluation' | 'trust'>,
  tree: ControlTree,
  testsSeconds: number,
  timeoutSeconds: number,
): { starts: boolean; seconds: number | null } | null {
  if (report.evaluation === 'not_run' || report.evaluation === 'sandbox_killed') return null;
  const isSure = report.evaluation === 'completed' && report.trust.level === 'clean';
  if (tree === 'sibling' && !isSure) return null;
  return evidenceIn(report, tree, testsSeconds, timeoutSeconds);
}

/** Adds the evidence of a control to the facts of a patch, if the registry of health does not explain how the evaluation ended. */
export async function addControlFacts(facts: RewardFacts, control: Control): Promise<void> {
  const { evaluation, gold_healthy, gold_time_share } = facts;
  if (evaluation === 'timed_out' && gold_time_share === null)
    facts.control_time_share = (await control.timeShare()).share;
  const isUnread = evaluation === 'tests_cannot_start' || evaluation === 'parser_failed';
  if (isUnread && gold_healthy !== true) facts.tests_start = await control.testsStart();
}
