/** Control evaluations of one attempt, and the evidence that the attempt's own evaluation adds. */
import { untouchedPatch } from '@swefarm/grading';
import { type ControlTree, errorMessage, type InstancePlan, isSandboxAgent } from '@swefarm/shared';
import { timeoutOf } from '../evaluation/cleanrun.ts';
import { conditionsOf, createControl, evidenceOf } from '../evaluation/control.ts';
import { type Evaluated, type EvaluationDeps, runTests } from '../evaluation/evaluate.ts';
import { limitsOf, networkOf, startClean } from './containers.ts';
import type { AttemptServices, Task } from './context.ts';
import type { Images } from './evaluationdeps.ts';
import { retryUntilAnswered, untilAborted } from './untilanswered.ts';

/** Time in which a worker stores the same evidence only once, and maximum number of entries that it remembers. */
const REPEAT_MS = 24 * 3_600_000;
const REMEMBERED = 10_000;

export function attemptControl(
  task: Task,
  { plan, patch, images }: { plan: InstancePlan; patch: string | null; images: Images },
  evaluation: EvaluationDeps,
) {
  const { run, instance, signal, log } = task;
  const { farm, metrics, noted } = task.services;
  const timeoutSeconds = timeoutOf(plan, run.evaluation.timeout);
  const conditions = conditionsOf({
    instance,
    plan,
    imageDigest: images.agent.digest,
    network: networkOf(task, 'evaluation'),
    timeoutSeconds,
    limits: limitsOf(task),
    env: [
      ...[run.sandbox.workdir, run.evaluation.envelope, run.evaluation.log_limit],
      ...(instance.harbor?.verifier.separate ? [images.evaluation.digest] : []),
    ],
  });
  const controlDeps: EvaluationDeps = {
    ...evaluation,
    container: () => startClean(task, images.evaluation),
    purpose: 'control',
    fromTree: false,
    goldTimeShare: null,
  };
  const tree = treeOf(task, patch, plan);
  const ask = <T>(call: () => Promise<T>): Promise<T> =>
    retryUntilAnswered('control', call, untilAborted(task));
  const control = createControl(instance, plan, conditions, {
    controls: farm.controls,
    leases: farm.leases,
    holder: `${task.claim}-${task.attempt}`,
    ask,
    run: (given) => runTests({ instance, plan, patch: given }, controlDeps),
    count: (labels) => metrics.controlEvaluations.inc(labels),
    timeoutSeconds,
    log,
    signal,
  });
  return {
    conditions,
    control: tree === 'sibling' ? control : null,
    /** Stores for the whole farm what the evaluation of the attempt's patch showed. */
    async note({ report, testsSeconds }: Evaluated): Promise<void> {
      const seen = evidenceOf(report, tree, testsSeconds, timeoutSeconds);
      if (seen === null || !isNew(noted, `${conditions} ${tree} ${seen.starts}`)) return;
      await farm.controls.note(conditions, tree, seen).catch((error: unknown) => {
        log.debug({ err: errorMessage(error) }, 'evidence of the evaluation not stored');
      });
    },
  };
}

/** The work of an agent is always a sibling, even if it equals gold or is empty: otherwise a policy could avoid being judged. */
function treeOf({ run, instance }: Task, patch: string | null, plan: InstancePlan): ControlTree {
  if (isSandboxAgent(run.agent.type)) return 'sibling';
  if (patch === '' || patch === untouchedPatch(plan)) return 'untouched';
  return patch !== null && patch === instance.patch ? 'gold' : 'sibling';
}

function isNew(noted: AttemptServices['noted'], key: string): boolean {
  const now = performance.now();
  const at = noted.get(key);
  if (at !== undefined && now - at < REPEAT_MS) return false;
  if (noted.size >= REMEMBERED) noted.clear();
  noted.set(key, now);
  return true;
}
