/** Ends an attempt with a result: writes the artifact, commits the result, ends the attempt in the journal, and logs one line. */
import { allTurns, type Result, RolloutFailure } from '@swefarm/shared';
import { dropResumableWork, storeArtifact } from './artifact.ts';
import { summaryOf } from './attemptlog.ts';
import {
  type AfterAttempt,
  type AttemptContext,
  type Conclusion,
  DONE,
  failureIn,
  ignoreIfEnded,
  isEmpty,
} from './context.ts';
import { attemptEnd, endAttempt } from './endattempt.ts';
import { countUnreadCalls, resultWithoutFacts, tokensOf } from './result.ts';
import { noteVerdict } from './samepatch.ts';
import { versionsOf } from './staleness.ts';
import { retryUntilAnswered, untilTakenOver } from './untilanswered.ts';

/** Maximum number of writes of an artifact: a Redis restored from a backup loses it once; a store that loses every write is faulty. */
const MOST_STORES = 3;

/** Throws RolloutFailure `artifact_store` if the artifact cannot be written (nothing is committed), and errors of retryUntilAnswered(). */
export async function commitAttempt(context: AttemptContext, conclusion: Conclusion): Promise<AfterAttempt> {
  const { services, clock, log, trace, previous, turns } = context;
  await turns.close(true);
  const failure = failureIn(conclusion);
  const won = await commitResult(context, conclusion);
  const end = failure ? attemptEnd.failed(failure) : attemptEnd.done(won);
  // The result is committed, even if the attempt is ended from outside before Redis accepts this journal entry.
  await endAttempt(context, end).catch(ignoreIfEnded(context));
  await dropResumableWork(context);
  await turns.remove(isEmpty(trace));
  services.metrics.attempts.inc({ class: failure?.class ?? (won ? 'done' : 'late') });
  const { fields, sentence } = summaryOf(conclusion, { won, trace, previous, seconds: clock.seconds() });
  log.info(fields, sentence);
  return DONE;
}

/** Returns true when the rollout has the result of this attempt; a late attempt removes its artifact. */
async function commitResult(context: AttemptContext, conclusion: Conclusion): Promise<boolean> {
  const { farm } = context.services;
  const how = untilTakenOver(context);
  for (let stores = 1; stores <= MOST_STORES; stores++) {
    const artifact = await storeArtifact(context, { failure: failureIn(conclusion) }, how);
    const result = resultOf(context, conclusion, artifact);
    const reply = await retryUntilAnswered('commit', () => farm.commit(context.run, result), how);
    if (reply.status === 'committed') {
      if (conclusion.outcome === 'judged') await noteVerdict(context, artifact);
      return true;
    }
    if (reply.status === 'artifact_lost') continue;
    if (artifact)
      await retryUntilAnswered('artifact of a late attempt', () => farm.artifacts.remove(artifact), how);
    return false;
  }
  const why = `the artifact was missing from its store at the commit, ${MOST_STORES} times in a row`;
  throw new RolloutFailure('artifact_store', why);
}

function resultOf(context: AttemptContext, conclusion: Conclusion, artifact: string | null): Result {
  const { job, attempt, claim, run, instance, trace, clock, services } = context;
  const { trajectory } = trace;
  const turns = trajectory ? allTurns(trajectory) : [];
  const { rollout_id, instance_id, rollout_index } = job;
  const { outcome } = conclusion;
  const usesCalls = run.agent.action === 'tool' || run.agent.type === 'installed';
  const unread = trajectory && usesCalls ? countUnreadCalls(trajectory) : undefined;
  const judged = outcome === 'judged' ? conclusion.judged : null;
  const { worker, node } = services.identity;
  const bare = resultWithoutFacts(
    run,
    { rollout_id, instance_id, rollout_index, attempt, claim },
    { worker, node, runtime: services.runtime.name, finished_at: services.farm.clock.now() },
    {
      outcome,
      reward_row: judged?.row ?? (outcome === 'cancelled' ? conclusion.cancelReason : outcome),
      failure: failureIn(conclusion),
    },
  );
  return {
    ...bare,
    ...('value' in instance ? { family: instance.value.family } : {}),
    resolved: judged?.resolved ?? null,
    reward: judged?.reward ?? null,
    ...(judged?.reward_components ? { reward_components: judged.reward_components } : {}),
    ...(judged?.reward_parts ? { reward_parts: judged.reward_parts } : {}),
    turns: turns.length,
    exit_status: trajectory?.exit_status ?? null,
    ...(unread ? { unread_calls: unread } : {}),
    ...(context.turns.replay ? { replay: context.turns.replay } : {}),
    ...(trajectory?.submits === undefined ? {} : { submits: trajectory.submits }),
    ...(trace.variant ? { variant: trace.variant } : {}),
    ...(trace.dryRun ? { dry_run: trace.dryRun } : {}),
    ...(trace.agent ? { agent: trace.agent } : {}),
    facts: judged?.facts ?? trace.facts,
    ...(judged && trace.gradedBy !== null ? { graded_by: trace.gradedBy } : {}),
    tokens: tokensOf(trajectory),
    policy_version: turns.at(-1)?.policy_version.end ?? bare.policy_version,
    ...(trajectory ? versionsOf(trajectory) : {}),
    seconds: clock.seconds(),
    artifact,
  };
}
