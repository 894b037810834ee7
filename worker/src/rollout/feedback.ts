/**
 * Feedback on submits before the last: the patch is evaluated in a clean container, as at the end of a rollout, and the model learns that
 * the tests failed. The reward is that of the last submit, which is evaluated again like any patch.
 */
import { isNoPatch, planEvaluation } from '@swefarm/grading';
import type { InstancePlan, Report } from '@swefarm/shared';
import type { Feedback } from '../agent/agent.ts';
import { runTests } from '../evaluation/evaluate.ts';
import { type AgentSandbox, startClean } from './containers.ts';
import type { Task } from './context.ts';
import { evaluationDeps } from './evaluationdeps.ts';
import { filesOf } from './sandboxfiles.ts';

/** Most names of tests in a feedback. */
const MOST_NAMES = 20;
const RESET_MS = 60_000;

/** Returns the judge of submits; null: the run gives no feedback. */
export function openFeedback(task: Task, sandbox: AgentSandbox) {
  const { run, instance, signal } = task;
  const { max_submits: most, patch_source: source, after_submit: after, feedback } = run.agent;
  if (most === 1 || !run.evaluation.enabled) return null;
  const plan = planEvaluation(instance, run.evaluation.grader);
  let seconds = 0;
  const judge = async (submission: string | null): Promise<Feedback | null> => {
    const taken = await filesOf(sandbox, signal).diff();
    const tree = Buffer.isBuffer(taken) ? taken : null;
    const patch =
      source === 'submission' && submission !== null ? submission : (tree?.toString('utf8') ?? null);
    const report = await evaluate(task, sandbox, plan, patch);
    // A grader that gives only a score has no verdict to tell, so its first submit is the last.
    if (report?.evaluation === 'completed' && report.resolved !== false) return null;
    const why = report === null ? 'the patch is empty, or cannot be taken' : reasonOf(report);
    const tests = feedback === 'tests' && report ? failedIn(report) : '';
    const isReset = after === 'reset' && tree !== null && (await reset(task, sandbox, tree));
    if (after === 'reset' && !isReset) task.log.warn('the repository could not be reset after a submit');
    return { why, tests, repository: isReset ? 'reset to its first state' : 'left as it is' };
  };
  return {
    /** Returns the seconds of all judgements, which are no time of the agent. */
    seconds: () => seconds,
    /** Returns null if the tests pass, or if there is no verdict. Throws RolloutFailure when the infrastructure prevents a verdict. */
    async judge(submission: string | null): Promise<Feedback | null> {
      const from = performance.now();
      try {
        return await judge(submission);
      } finally {
        seconds += (performance.now() - from) / 1000;
      }
    },
  };
}

async function evaluate(
  task: Task,
  { container }: AgentSandbox,
  plan: InstancePlan,
  patch: string | null,
): Promise<Report | null> {
  if (patch === null || isNoPatch(patch, plan)) return null;
  const { image } = container.spec;
  const deps = evaluationDeps(task, {
    ...{ images: { agent: image, evaluation: image }, container: () => startClean(task, image) },
    ...{ evaluateEmpty: false, purpose: 'feedback', goldTimeShare: null },
    fromTree: task.run.agent.patch_source === 'tree',
  });
  return (await runTests({ instance: task.instance, plan, patch }, deps)).report;
}

function reasonOf({ patch_state: state, evaluation }: Report): string {
  if (state === 'not_applied' || state === 'too_large') return 'the patch cannot be applied';
  if (evaluation === 'timed_out') return 'the tests did not end in time';
  return evaluation === 'completed' ? 'not all of them pass' : 'the tests did not run to their end';
}

/** Returns the names of tests that decide and did not pass. */
function failedIn({ tests_status: status }: Report): string {
  const names = [...(status?.FAIL_TO_PASS.failure ?? []), ...(status?.PASS_TO_PASS.failure ?? [])];
  const more = names.length > MOST_NAMES ? [`and ${names.length - MOST_NAMES} more`] : [];
  return [...names.slice(0, MOST_NAMES).map((name) => name.slice(0, 200)), ...more]
    .map((line) => `\n- ${line}`)
    .join('');
}

/** Takes back the changes of the tree. Returns whether that succeeded: the model's commands may have broken git. */
async function reset({ signal }: Task, { container }: AgentSandbox, patch: Buffer): Promise<boolean> {
  if (patch.length === 0) return true;
  const { exitCode } = await container.exec(['git', 'apply', '-R', '--whitespace=nowarn', '-'], {
    ...{ cwd: container.workdir, stdin: patch, timeoutMs: RESET_MS, maxOutputBytes: 4_096, signal },
  });
  return exitCode === 0;
}
