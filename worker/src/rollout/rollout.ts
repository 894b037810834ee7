/**
 * One attempt at one rollout, from image to reward. The attempt returns its verdict or throws; `attempt.ts` decides whether a failure is
 * retried, and what is committed.
 */
import { needsEvaluation, planEvaluation, withReport } from '@swefarm/grading';
import { PreparedContainer, requirePossible } from '@swefarm/sandbox';
import { type InstancePlan, isSandboxAgent, type RewardFacts } from '@swefarm/shared';
import { timeoutOf } from '../evaluation/cleanrun.ts';
import { addControlFacts } from '../evaluation/control.ts';
import { evaluate } from '../evaluation/evaluate.ts';
import { imageOf, verifierImageOf } from '../harbor/settings.ts';
import { givenWork, type Prepared, resumedWork, runAgent } from './agentstage.ts';
import { limitsOf, networkOf, refuseExcess, requireProgram, shortMemory, startClean } from './containers.ts';
import type { AgentWork, Judged, Task } from './context.ts';
import { attemptControl } from './control.ts';
import { evaluationDeps, type Images } from './evaluationdeps.ts';
import { factsOf, goldHealthOf, judge } from './facts.ts';
import { refuseVerdict, samePatchKey, takeVerdict } from './samepatch.ts';
import { type Staleness, watchStaleness } from './staleness.ts';

/** Throws RolloutFailure when infrastructure is at fault; `task.trace` then has everything that is known so far. */
export async function runRollout(task: Task): Promise<Judged> {
  const { run, instance, clock, signal, trace, services } = task;
  const { runtime, metrics } = services;
  refuseExcess(task);
  const plan = planEvaluation(instance, run.evaluation.grader);
  requireProgram(plan, task);
  trace.evalScript = plan.script;

  requirePossible(limitsOf(task), (await runtime.most?.()) ?? null);
  const short = shortMemory(task);
  if (short !== null) task.log.warn(`sandbox has less memory than the harness gives: ${short}`);
  const image = await clock.time('image', () => imageOf(instance, runtime, signal));
  metrics.imagesReady.inc({ source: image.pulled ? 'pulled' : 'cached' });
  const own = await clock.time('image', () => verifierImageOf(instance, runtime, signal));
  const images = { agent: image, evaluation: own ?? image };
  await using clean = new PreparedContainer(() => startClean(task, images.evaluation));

  using staleness = await followStaleness(task);
  const work = await obtainWork(task, { image, clean, staleness });
  trace.patch = work.patch;

  const facts = task.resumable?.facts ?? factsOf(task, work, plan);
  trace.facts = facts;
  const network = networkOf(task, 'evaluation');
  const timeoutSeconds = timeoutOf(plan, run.evaluation.timeout);
  const conditions = { imageDigest: image.digest, grader: plan.grader, network, timeoutSeconds };
  Object.assign(facts, goldHealthOf(instance, conditions));
  const evaluateEmpty = !isSandboxAgent(run.agent.type) || instance.harbor !== undefined;
  if (needsEvaluation(facts, run.reward.overrides, { evaluateEmpty }))
    await evaluateWork(task, plan, facts, { clean, images, evaluateEmpty });
  // A dry run on `host` is evaluated, but gets a reward only if worker and run allow that.
  if (!runtime.isolates && !(run.reward.host && services.config.host_rewards)) facts.ungraded = true;
  return judge(task, facts, plan);
}

async function obtainWork(task: Task, prepared: Prepared): Promise<AgentWork> {
  const { type: agent } = task.run.agent;
  if (task.resumable) {
    task.permit?.[Symbol.dispose]();
    prepared.clean.begin();
    return resumedWork(task, task.resumable);
  }
  return isSandboxAgent(agent) ? await runAgent(agent, task, prepared) : givenWork(task);
}

async function evaluateWork(
  task: Task,
  plan: InstancePlan,
  facts: RewardFacts,
  { clean, images, evaluateEmpty }: Pick<Prepared, 'clean'> & { images: Images; evaluateEmpty: boolean },
): Promise<void> {
  const { run, instance, clock, trace } = task;
  // The agent of a Harbor task yields no patch: the verifier grades the agent's container.
  const patch = instance.harbor ? (trace.patch ?? '') : trace.patch;
  const deps = evaluationDeps(task, {
    ...{ images, container: () => clean.take(), evaluateEmpty, purpose: 'patch' },
    goldTimeShare: facts.gold_time_share,
    fromTree: facts.patch_origin === 'tree',
  });
  const { control, conditions, note } = attemptControl(task, { plan, patch, images }, deps);
  const key = samePatchKey(task, patch, conditions, deps);
  await clock.time('evaluation', async () => {
    const taken = key === null ? null : await takeVerdict(task, key, timeoutOf(plan, run.evaluation.timeout));
    if (taken) {
      trace.report = taken.report;
      trace.testLog = taken.log;
      trace.gradedBy = taken.by;
      Object.assign(facts, withReport(facts, taken.report));
      return;
    }
    // The work of an agent is what was taken from its container, even if nothing could be taken.
    const collected = trace.collected ?? (isSandboxAgent(run.agent.type) ? [] : null);
    const work = { instance, plan, patch, ...(collected ? { collected } : {}) };
    const evaluated = await evaluate(work, { ...deps, control });
    trace.collected = evaluated.collected ?? collected;
    trace.report = evaluated.report;
    trace.testLog = evaluated.log;
    clock.set('evaluation_start', evaluated.startSeconds);
    clock.set('tests', evaluated.testsSeconds);
    Object.assign(facts, withReport(facts, evaluated.report));
    if (facts.patch_state === 'not_applied' && facts.patch_origin === 'tree')
      task.log.warn(
        'patch of the tree does not apply: the agent broke git or its objects, or the farm has a bug',
      );
    await refuseVerdict(task, evaluated.report);
    await note(evaluated);
    if (control) await addControlFacts(facts, control);
  });
}

async function followStaleness({ run, job, trace, services }: Task): Promise<Staleness> {
  const { policies, active } = services;
  const watched = run.max_staleness === null ? null : run.policy;
  const followed = watched && (await policies.follow(watched));
  const staleness = watchStaleness({
    most: watched && run.max_staleness,
    trajectory: () => trace.trajectory,
    policy: () => followed?.record() ?? null,
    onStale: () => active.abort(job.rollout_id, 'cancelled', 'stale'),
  });
  return {
    check: staleness.check,
    [Symbol.dispose]() {
      staleness[Symbol.dispose]();
      followed?.[Symbol.dispose]();
    },
  };
}
