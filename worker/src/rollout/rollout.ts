/**
 * One attempt at one rollout, from image to reward: the path of a job through this worker, top to bottom.
 * It returns facts; whether a failure is tried again, and what is committed, is decided by `attempt.ts`.
 */
import { needsEvaluation, planEvaluation } from '@swefarm/grading';
import { isSandboxAgent } from '@swefarm/shared';
import { evaluate } from '../evaluation/evaluate.ts';
import { knownGold } from '../evaluation/gold.ts';
import type { Node } from '../node/node.ts';
import { requirePossible } from '../sandbox/possible.ts';
import { PreparedContainer } from '../sandbox/prepared.ts';
import { given, letAgentWork, resumed } from './agentstage.ts';
import { containerSpec, limitsOf, networkOf, refuseExcess } from './containers.ts';
import { addVerdict, factsOf, type Judged, judge } from './facts.ts';
import { type Staleness, watchStaleness } from './staleness.ts';
import type { Task } from './task.ts';

/** Throws RolloutFailure when infrastructure is at fault; the task's trace says how far it came. */
export async function runRollout(task: Task, node: Node): Promise<Judged> {
  const { run, instance, clock, signal, trace } = task;
  refuseExcess(task, node);
  const plan = planEvaluation(instance, run.evaluation.grader);
  trace.evalScript = plan.evalScript;

  requirePossible(limitsOf(task, node), (await node.runtime.most?.()) ?? null);
  const image = await clock.time('image', () =>
    node.runtime.ensureImage(instance.image, signal, instance.instance_id),
  );
  node.metrics.imagesReady.inc({ source: image.pulled ? 'pulled' : 'cached' });
  await using clean = new PreparedContainer(() =>
    node.runtime.start(containerSpec(task, node, image, 'evaluation'), signal),
  );

  // Over all stages: work that an earlier attempt left, and an evaluation, age as a turn does.
  using staleness = await followStaleness(task, node);
  const { type: agent } = run.agent;
  if (task.kept) clean.begin();
  const work = task.kept
    ? resumed(task, task.kept)
    : isSandboxAgent(agent)
      ? await letAgentWork(agent, task, node, image, clean, staleness)
      : given(task);
  trace.patch = work.patch;

  const network = networkOf(task, 'evaluation');
  const facts = task.kept?.facts ?? factsOf(task, work, plan.grader);
  Object.assign(
    facts,
    knownGold(instance, {
      imageDigest: image.digest,
      grader: plan.grader,
      network,
      timeoutSeconds: run.evaluation.timeout,
    }),
  );
  trace.facts = facts;
  const preflight = !isSandboxAgent(agent);
  if (needsEvaluation(facts, run.reward.overrides, { evaluateEmpty: preflight })) {
    const evaluated = await clock.time('evaluation', () =>
      evaluate(instance, plan, work.patch, {
        container: () => clean.take(),
        threads: node.threads,
        leaving: node.removals,
        quiet: node.evaluationLock,
        timeoutSeconds: run.evaluation.timeout,
        logLimit: run.evaluation.log_limit,
        evaluateEmpty: preflight,
        imageDigest: image.digest,
        network,
        runtime: node.runtime,
        goldTimeShare: facts.gold_time_share,
        diskBytes: run.sandbox.disk_bytes,
        signal,
      }),
    );
    trace.report = evaluated.report;
    trace.testLog = evaluated.log;
    clock.set('evaluation_start', evaluated.startSeconds);
    clock.set('tests', evaluated.testsSeconds);
    addVerdict(facts, evaluated.report);
  }
  // The dry run is evaluated, so that one sees it work; a reward it has only by explicit leave.
  if (!node.runtime.isolates && !(run.reward.host && node.hostRewards)) facts.ungraded = true;
  return judge(task, facts, plan);
}

async function followStaleness({ run, job, trace }: Task, node: Node): Promise<Staleness> {
  const watched = run.max_staleness === null ? null : run.policy;
  using stack = new DisposableStack();
  const followed = watched && stack.use(await node.policies.follow(watched));
  const staleness = stack.use(
    watchStaleness({
      most: watched && run.max_staleness,
      trajectory: () => trace.trajectory,
      policy: () => followed?.record() ?? null,
      onStale: () => node.active.abort(job.rollout_id, 'cancelled', 'stale'),
    }),
  );
  const owned = stack.move();
  return { look: staleness.look, [Symbol.dispose]: () => owned.dispose() };
}
