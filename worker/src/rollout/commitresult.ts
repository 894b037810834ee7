/** The end of an attempt: artifact first, then the one commit that makes it the rollout's result. */
import {
  type ArtifactContent,
  type AttemptName,
  type CancelReason,
  createSemaphore,
  encodeArtifact,
  errorMessage,
  type Failure,
  type Outcome,
  parseUsage,
  type Result,
  RolloutFailure,
  type RolloutJob,
  type RunRecord,
  SwefarmError,
  softwareVersion,
} from '@swefarm/shared';
import { countUnreadCalls } from '../agent/unreadcalls.ts';
import type { Node } from '../node/node.ts';
import { abortKind } from './abort.ts';
import type { Judged } from './facts.ts';
import type { StageClock } from './stages.ts';
import { versionsOf } from './staleness.ts';
import type { KeptWork, Trace } from './task.ts';
import { type AnswerWait, retryUntilAnswered } from './untilanswered.ts';

/** Many rollouts may end at once: their artifacts are made one after the other, so that the loop has time for the others. */
const encoders = createSemaphore(2);

/** A Redis that goes back to an older copy does not do so again within moments; one that keeps nothing it is given is at fault. */
const MOST_STORES = 3;

export type AttemptConclusion = AttemptName & {
  job: RolloutJob;
  run: RunRecord;
  outcome: Outcome;
  /** Of outcome `cancelled`. */
  cancelReason: CancelReason | null;
  judged: Judged | null;
  failure: Failure | null;
  trace: Trace;
  clock: StageClock;
};

/**
 * Writes artifact and result; true when this attempt's result is the rollout's. A late attempt removes its artifact.
 * What Redis refuses is said again until it is answered.
 *
 * @throws RolloutFailure `artifact_store` when the artifact cannot be written: then nothing is committed; and as insist()
 */
export async function commitResult(
  settlement: AttemptConclusion,
  node: Node,
  how: AnswerWait,
): Promise<boolean> {
  for (let stores = 1; stores <= MOST_STORES; stores++) {
    const artifact = await storeArtifact(settlement, node, how);
    const result = resultOf(settlement, node, artifact);
    const reply = await retryUntilAnswered('commit', () => node.farm.commit(settlement.run, result), how);
    if (reply.status === 'committed') return true;
    if (reply.status === 'artifact_lost') continue;
    if (artifact)
      await retryUntilAnswered('artifact of a late attempt', () => node.farm.artifacts.remove(artifact), how);
    return false;
  }
  throw new RolloutFailure('artifact_store', 'what is stored is gone when its result is committed');
}

/** Stores what the next attempt is to evaluate, under this attempt; null when it cannot be stored: no harm but work. */
export async function storeResumableWork(
  what: Pick<AttemptConclusion, 'job' | 'attempt' | 'claim' | 'trace'>,
  kept: KeptWork,
  node: Node,
  how: AnswerWait,
): Promise<string | null> {
  const { facts, seconds } = kept;
  const settlement = { ...what, failure: null, kept: { facts, seconds } };
  try {
    return await storeArtifact(settlement, node, how);
  } catch (error) {
    node.log.warn({ rollout_id: what.job.rollout_id, err: errorMessage(error) }, 'work could not be kept');
    return null;
  }
}

type Stored = Pick<AttemptConclusion, 'job' | 'attempt' | 'claim' | 'trace' | 'failure'> & {
  kept?: ArtifactContent['kept'];
};

async function storeArtifact(settlement: Stored, node: Node, how: AnswerWait): Promise<string | null> {
  const { job, attempt, claim, trace, failure } = settlement;
  if (!trace.trajectory && trace.patch === null && !trace.report) return null;
  const blob = await encoders.run(() =>
    encodeArtifact({
      format: 'swefarm-artifact-1',
      rollout_id: job.rollout_id,
      attempt,
      claim,
      software_version: softwareVersion(),
      instance_id: job.instance_id,
      trajectory: trace.trajectory,
      patch: trace.patch,
      report: trace.report,
      test_log: trace.testLog,
      eval_script: trace.evalScript,
      failure_detail: failure ? `${failure.stage}/${failure.class}: ${failure.message}` : null,
      ...(settlement.kept ? { kept: settlement.kept } : {}),
    }),
  );
  try {
    return await retryUntilAnswered(
      'artifact',
      // Written also while the worker drains; only another owner's claim stops it.
      () => node.farm.artifacts.put(job.rollout_id, { attempt, claim }, blob, whenSuperseded(how.signal)),
      how,
    );
  } catch (cause) {
    if (cause instanceof SwefarmError) throw new RolloutFailure('artifact_store', cause.message, { cause });
    throw cause;
  }
}

const whenSuperseded = (signal: AbortSignal | undefined): AbortSignal | undefined =>
  signal && abortKind(signal) === 'superseded' ? signal : undefined;

function resultOf(settlement: AttemptConclusion, node: Node, artifact: string | null): Result {
  const { job, attempt, claim, run, outcome, judged, failure, trace, clock } = settlement;
  const { trajectory } = trace;
  const unread = trajectory && run.agent.action === 'tool' ? countUnreadCalls(trajectory) : undefined;
  const facts = judged?.facts ?? trace.facts;
  const sum = (key: 'prompt_tokens' | 'completion_tokens'): number =>
    trajectory?.turns.reduce((total, turn) => total + (parseUsage(turn.usage)?.[key] ?? 0), 0) ?? 0;
  return {
    format: 'swefarm-result-1',
    run_id: run.run_id,
    rollout_id: job.rollout_id,
    instance_id: job.instance_id,
    rollout_index: job.rollout_index,
    attempt,
    claim,
    software_version: softwareVersion(),
    worker: node.identity.worker,
    node: node.identity.node,
    runtime: node.runtime.name,
    outcome,
    resolved: outcome === 'judged' ? (judged?.resolved ?? null) : null,
    reward: outcome === 'judged' ? (judged?.reward ?? null) : null,
    reward_row: judged?.row ?? settlement.cancelReason ?? outcome,
    reward_table: `${run.reward.table}:${run.reward.hash}`,
    turns: trajectory?.turns.length ?? 0,
    exit_status: trajectory?.exit_status ?? null,
    ...(unread ? { unread_calls: unread } : {}),
    failure,
    facts,
    tokens: { prompt: sum('prompt_tokens'), completion: sum('completion_tokens') },
    policy_version: trajectory?.turns.at(-1)?.policy_version.end ?? run.policy?.version ?? null,
    ...(trajectory ? versionsOf(trajectory) : {}),
    seconds: clock.seconds(),
    artifact,
    finished_at: node.farm.clock.now(),
  };
}
