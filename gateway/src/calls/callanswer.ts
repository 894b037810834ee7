/** Waits for the rollout of a call and decides the answer: the result, or a failure in the form that this caller expects. */
import {
  type ArtifactContent,
  errorMessage,
  onAbort,
  type Result,
  type Semaphore,
  SwefarmError,
} from '@swefarm/shared';
import { type Cause, hasTrainedTurn, type Unjudged, unjudgedCause } from '@swefarm/trajectories';
import type { RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import type { CallConnection } from './callconnection.ts';
import type { CallRollout, CallTracker } from './calltracker.ts';
import { type CallEnding, CONSEQUENCES, decideEnding, type FailureMode, isTraining } from './failuremode.ts';
import type { ResultReaders } from './resultreaders.ts';
import type { Membership } from './siblings.ts';

export type CallAnswer = {
  result: Result;
  content: ArtifactContent | null;
  /** Why the caller cannot use the result; `unjudged` adds how the answer shows the cause. Both are null for a usable result. */
  cause: Cause | null;
  unjudged: Unjudged | null;
  rollout: CallRollout;
};

export type AnswerDeps = Pick<RouteDeps, 'farm' | 'log'> & {
  calls: CallTracker;
  results: ResultReaders;
  /** Limits the number of answers in memory. */
  writers: Semaphore;
};

type WaitingCall = {
  mode: FailureMode;
  /** Whether the trainer excludes masked samples from its loss. */
  masks: boolean;
  connection: CallConnection;
  /** Membership in the stream of the caller; null: no stream. */
  membership: Membership | null;
};

/** Why a rollout has no answer for its caller, and how its call continues or ends. */
type Ending = { cause: Cause; ending: CallEnding };

/** Pause before another rollout replaces a failed rollout of the same call, in milliseconds. */
const RETRY_MS = { first: 5_000, longest: 60_000 };

/** Number of attempts to read an artifact. */
const READS = 3;
const READ_AGAIN_MS = 300;

const MASKS =
  'a caller whose trainer excludes masked samples gets it masked: mask_sample: honoured in its entry, or gateway_mask_sample';

/** Refusal (503 or 422) of a call whose rollout has no usable verdict. In an episode, the answer is the episode's failure instead. */
export class NoVerdict extends Refusal {
  readonly reason: Cause;

  constructor(reason: Cause, mode: FailureMode) {
    const status = reason.kind === 'passing' ? 503 : 422;
    const hint = reason.kind === 'withheld' ? `; ${MASKS}` : '';
    super(status, reason.class, `${reason.class}: ${reason.message}; ${CONSEQUENCES[mode]}${hint}`);
    this.reason = reason;
  }
}

/**
 * Waits for a rollout, and for other rollouts that replace a failed one. The returned answer occupies a slot of `writers` until the
 * connection closes.
 *
 * @throws NoVerdict, Refusal `run_gone`, the reason of `connection.closed`, errors of Redis
 */
export async function awaitAnswer(
  deps: AnswerDeps,
  first: CallRollout,
  call: WaitingCall,
): Promise<CallAnswer> {
  const { mode, connection, membership } = call;
  let rollout = first;
  let pauseMs = RETRY_MS.first;
  for (let rollouts = 1; ; rollouts++) {
    const ended = await awaitResult(deps, rollout, call);
    // The caller may have abandoned this connection, and may send the row again on another connection.
    if (!('cause' in ended) && unjudgedCause(ended) === null)
      await membership?.whileResendable(connection.closed);
    const answer = 'cause' in ended ? ended : await readAnswer(deps, ended, rollout, call, rollouts);
    if ('unjudged' in answer) return answer;
    const { cause, ending } = answer;
    if (ending !== 'again' || connection.deadline - Date.now() - pauseMs <= 0)
      throw new NoVerdict(cause, mode);
    const context = { rollout_id: rollout.rolloutId, cause: cause.class };
    deps.log.info(context, 'rollout failed: another one replaces it under the same call');
    await connection.sleep(pauseMs);
    pauseMs = Math.min(pauseMs * 2, RETRY_MS.longest);
    const next = await deps.calls.retry(rollout);
    if (!next) throw new NoVerdict(cause, mode);
    rollout = next;
  }
}

async function awaitResult(
  { farm, results }: AnswerDeps,
  { run, rolloutId }: CallRollout,
  { mode, connection }: WaitingCall,
): Promise<Result | Ending> {
  const late = AbortSignal.timeout(Math.max(1, connection.deadline - Date.now()));
  try {
    return await results.wait(run.run_id, rolloutId, AbortSignal.any([connection.closed, late]));
  } catch (error) {
    if (error instanceof SwefarmError && error.code === 'result_unreadable') {
      const cause: Cause = { class: error.code, message: error.message, kind: 'passing' };
      return { cause, ending: decideEnding(cause, mode, { maskable: false, rollouts: 1 }) };
    }
    if (!late.aborted || connection.closed.aborted) throw error;
    await farm.cancel.cancelRollouts([rolloutId], 'deadline');
    const { seconds, field } = connection.limit;
    const message = `no verdict within ${seconds} s (${field}); the rollout is cancelled`;
    throw new NoVerdict({ class: 'hold_expired', message, kind: 'passing' }, mode);
  }
}

/** Returns the answer, which occupies a slot, or why this caller gets no answer from the result. */
async function readAnswer(
  deps: AnswerDeps,
  result: Result,
  rollout: CallRollout,
  { mode, masks, connection }: WaitingCall,
  rollouts: number,
): Promise<CallAnswer | Ending> {
  const release = await deps.writers.acquire(connection.closed);
  onAbort(connection.closed, release);
  const content = await readContent(deps, result, connection);
  const own = unjudgedCause(result);
  // The artifact is needed only for an answer that contains the conversation.
  const needed = own === null || decideEnding(own, mode, { maskable: masks, rollouts }) === 'masked';
  const isLost = needed && content === null && result.artifact !== null && isSample(mode, rollout);
  const cause = isLost ? UNREADABLE : (own ?? withoutTokens(result, content, mode, rollout));
  if (cause === null) return { result, content, cause, unjudged: null, rollout };
  const maskable = masks && hasTrainedTurn(content);
  const ending = decideEnding(cause, mode, { maskable, rollouts });
  if (ending === 'failure' || ending === 'masked') {
    return { result, content, cause, unjudged: { ...cause, shown: ending }, rollout };
  }
  release();
  return { cause, ending };
}

/**
 * Reads the artifact with retries, so that a failed read does not make a judged rollout run again. Returns null if all reads fail, or if
 * the result has no artifact.
 */
async function readContent(
  { farm, log }: AnswerDeps,
  result: Result,
  connection: CallConnection,
): Promise<ArtifactContent | null> {
  if (result.artifact === null) return null;
  for (let reads = 1; ; reads++) {
    try {
      return await farm.artifacts.read(result.artifact);
    } catch (error) {
      const context = { rollout_id: result.rollout_id, reads, err: errorMessage(error) };
      log.warn(context, 'artifact read failed');
      if (reads === READS) return null;
      await connection.sleep(READ_AGAIN_MS);
    }
  }
}

const UNREADABLE: Cause = {
  class: 'artifact_unreadable',
  message: 'the rollout ended, but its trajectory cannot be read',
  kind: 'passing',
};

const isSample = (mode: FailureMode, rollout: CallRollout): boolean =>
  isTraining(mode) && rollout.run.policy !== null;

/** Returns a cause if a trainer's judged rollout has no token ids, because the trainer cannot use the rollout; otherwise null. */
function withoutTokens(
  result: Result,
  content: ArtifactContent | null,
  mode: FailureMode,
  rollout: CallRollout,
): Cause | null {
  if (!isSample(mode, rollout) || hasTrainedTurn(content)) return null;
  return {
    class: 'no_trained_turn',
    message: `judged after ${result.turns} turns, but none has token ids`,
    kind: 'broken',
  };
}
