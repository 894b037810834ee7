/** Ends an attempt: writes the artifact, then commits the result. */
import {
  type ArtifactContent,
  type AttemptName,
  type CancelReason,
  createSemaphore,
  encodeArtifact,
  errorMessage,
  type Failure,
  type Result,
  RolloutFailure,
  type RolloutJob,
  type RunRecord,
  SwefarmError,
  softwareVersion,
} from '@swefarm/shared';
import { countUnreadCalls } from '../agent/unreadcalls.ts';
import { abortOf } from './abort.ts';
import { resultWithoutFacts, tokensOf } from './result.ts';
import type { AttemptServices } from './services.ts';
import type { StageClock } from './stages.ts';
import { versionsOf } from './staleness.ts';
import type { Judged, ResumableWork, Trace } from './task.ts';
import { type AnswerWait, retryUntilAnswered } from './untilanswered.ts';

/** Maximum number of parallel encoders, so that many rollouts that end at once do not block the event loop. */
const encoders = createSemaphore(2);

/** Maximum number of writes of an artifact: a Redis restored from a backup loses it once; a store that loses every write is faulty. */
const MOST_STORES = 3;

export type Conclusion =
  | { outcome: 'judged'; judged: Judged }
  | { outcome: 'failed'; failure: Failure }
  | { outcome: 'cancelled'; cancelReason: CancelReason };

type AttemptConclusion = Conclusion &
  AttemptName & {
    job: RolloutJob;
    run: RunRecord;
    /** Family of the instance; undefined: the instance could not be read. */
    family: string | undefined;
    trace: Trace;
    clock: StageClock;
  };

export const failureIn = (conclusion: Conclusion): Failure | null =>
  conclusion.outcome === 'failed' ? conclusion.failure : null;

type Services = Pick<AttemptServices, 'farm' | 'identity' | 'log' | 'runtime'>;

/**
 * Writes artifact and result. Returns true when the rollout has the result of this attempt; a late attempt removes its artifact.
 *
 * @throws RolloutFailure `artifact_store` when the artifact cannot be written: then nothing is committed; the errors of
 * retryUntilAnswered()
 */
export async function commitResult(
  concluded: AttemptConclusion,
  services: Services,
  how: AnswerWait,
): Promise<boolean> {
  for (let stores = 1; stores <= MOST_STORES; stores++) {
    const artifact = await storeArtifact({ ...concluded, failure: failureIn(concluded) }, services, how);
    const result = resultOf(concluded, services, artifact);
    const reply = await retryUntilAnswered('commit', () => services.farm.commit(concluded.run, result), how);
    if (reply.status === 'committed') return true;
    if (reply.status === 'artifact_lost') continue;
    if (artifact)
      await retryUntilAnswered(
        'artifact of a late attempt',
        () => services.farm.artifacts.remove(artifact),
        how,
      );
    return false;
  }
  throw new RolloutFailure(
    'artifact_store',
    `the artifact was missing from its store at the commit, ${MOST_STORES} times in a row`,
  );
}

/** Stores the work that the next attempt only evaluates. Returns null when that fails; the agent then works again. */
export async function storeResumableWork(
  attempt: Omit<Stored, 'failure' | 'resumable'>,
  { facts, seconds }: ResumableWork,
  services: Services,
  how: AnswerWait,
): Promise<string | null> {
  try {
    const stored = { ...attempt, failure: null, resumable: { facts, seconds } };
    return await storeArtifact(stored, services, how);
  } catch (error) {
    services.log.warn(
      { rollout_id: attempt.job.rollout_id, err: errorMessage(error) },
      'resumable work not stored: the agent works again',
    );
    return null;
  }
}

type Stored = AttemptName & {
  job: RolloutJob;
  trace: Trace;
  failure: Failure | null;
  resumable?: ArtifactContent['kept'];
};

async function storeArtifact(stored: Stored, services: Services, how: AnswerWait): Promise<string | null> {
  const { job, attempt, claim, trace, failure, resumable } = stored;
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
      ...(resumable ? { kept: resumable } : {}),
    }),
  );
  try {
    return await retryUntilAnswered(
      'artifact',
      // A drain does not stop this write; only the claim of another worker does.
      () => services.farm.artifacts.put(job.rollout_id, { attempt, claim }, blob, whenSuperseded(how.signal)),
      how,
    );
  } catch (cause) {
    if (cause instanceof SwefarmError) throw new RolloutFailure('artifact_store', cause.message, { cause });
    throw cause;
  }
}

const whenSuperseded = (signal: AbortSignal | undefined): AbortSignal | undefined =>
  signal && abortOf(signal)?.kind === 'superseded' ? signal : undefined;

function resultOf(concluded: AttemptConclusion, services: Services, artifact: string | null): Result {
  const { job, attempt, claim, run, family, outcome, trace, clock } = concluded;
  const { trajectory } = trace;
  const { rollout_id, instance_id, rollout_index } = job;
  const unread = trajectory && run.agent.action === 'tool' ? countUnreadCalls(trajectory) : undefined;
  const judged = outcome === 'judged' ? concluded.judged : null;
  const { worker, node } = services.identity;
  const bare = resultWithoutFacts(
    run,
    { rollout_id, instance_id, rollout_index, attempt, claim },
    { worker, node, runtime: services.runtime.name, finished_at: services.farm.clock.now() },
    {
      outcome,
      reward_row: judged?.row ?? (outcome === 'cancelled' ? concluded.cancelReason : outcome),
      failure: failureIn(concluded),
    },
  );
  return {
    ...bare,
    ...(family === undefined ? {} : { family }),
    resolved: judged?.resolved ?? null,
    reward: judged?.reward ?? null,
    ...(judged?.reward_components ? { reward_components: judged.reward_components } : {}),
    turns: trajectory?.turns.length ?? 0,
    exit_status: trajectory?.exit_status ?? null,
    ...(unread ? { unread_calls: unread } : {}),
    facts: judged?.facts ?? trace.facts,
    tokens: tokensOf(trajectory),
    policy_version: trajectory?.turns.at(-1)?.policy_version.end ?? bare.policy_version,
    ...(trajectory ? versionsOf(trajectory) : {}),
    seconds: clock.seconds(),
    artifact,
  };
}
