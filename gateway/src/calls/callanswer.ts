/** From the rollout of a call to its answer: the result, or what this caller gets in place of one. */
import { type ArtifactContent, errorMessage, type Result, SwefarmError } from '@swefarm/shared';
import { type Cause, hasTrainedTurn, type Unjudged, unjudgedCause } from '@swefarm/trajectories';
import type { RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import type { CallConnection } from './callconnection.ts';
import type { CallRollout, CallTracker } from './calltracker.ts';
import { type CallEnding, CONSEQUENCES, decideEnding, type FailureMode, isTraining } from './failuremode.ts';
import type { ResultReaders } from './resultreaders.ts';

export type CallAnswer = {
  result: Result;
  content: ArtifactContent | null;
  /** Why it is no verdict, and how the answer shows that; null: it is one. */
  cause: Cause | null;
  unjudged: Unjudged | null;
  rollout: CallRollout;
};

export type AnswerDeps = Pick<RouteDeps, 'farm' | 'log'> & { calls: CallTracker; results: ResultReaders };

/** A call, as far as its answer depends on it. */
export type AnswerRequest = {
  mode: FailureMode;
  /** The trainer leaves masked samples out of its loss. */
  honoursMask: boolean;
  connection: CallConnection;
  /** Waits while nobody may read the connection: the same row sent again then takes the judged rollout up. */
  untilReadable: () => Promise<void>;
  /** Waits until the answer may be read and written; what it resolves to gives the slot back. */
  takeSlot: () => Promise<() => void>;
};

/** A rollout has no answer for its caller, for this cause. */
type Ending = { cause: Cause; ending: CallEnding };

/** Between a failed rollout and its successor under the same call. */
const RETRY_MS = { first: 5_000, longest: 60_000 };

/** How often an artifact is read, with so long between. */
const READS = 3;
const READ_AGAIN_MS = 300;

const MASKS =
  'a caller whose trainer leaves masked samples out gets it masked: mask_sample: honoured in its entry, or gateway_mask_sample';

/** Answered as 503 or 422, or as the failure of an episode. */
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
 * Waits for a rollout, and for its successors where this caller wants another one in place of a failed one. The answer comes with a slot.
 *
 * @throws NoVerdict, what `connection.closed` aborts with, errors of Redis
 */
export async function awaitAnswer(
  deps: AnswerDeps,
  first: CallRollout,
  request: AnswerRequest,
): Promise<CallAnswer> {
  const { mode, connection } = request;
  let rollout = first;
  let pauseMs = RETRY_MS.first;
  for (let rollouts = 1; ; rollouts++) {
    const ended = await awaitResult(deps, rollout, request);
    if (!('cause' in ended) && unjudgedCause(ended) === null) await request.untilReadable();
    const answer = 'cause' in ended ? ended : await readAnswer(deps, ended, rollout, request, rollouts);
    if ('unjudged' in answer) return answer;
    const { cause, ending } = answer;
    if (ending !== 'again' || connection.deadline - Date.now() - pauseMs <= 0)
      throw new NoVerdict(cause, mode);
    const context = { rollout_id: rollout.rolloutId, cause: cause.class };
    deps.log.info(context, 'a rollout failed: another one takes its place under the same call');
    await connection.sleep(pauseMs);
    pauseMs = Math.min(pauseMs * 2, RETRY_MS.longest);
    const next = await deps.calls.retry(rollout);
    if (!next) throw new NoVerdict(cause, mode);
    rollout = next;
  }
}

/** The result of a rollout, or why nobody here can read it. */
async function awaitResult(
  { farm, results }: AnswerDeps,
  { run, rolloutId }: CallRollout,
  { mode, connection }: AnswerRequest,
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

/** What is answered of a result, with a slot; else why it is no answer for this caller. */
async function readAnswer(
  deps: AnswerDeps,
  result: Result,
  rollout: CallRollout,
  { mode, honoursMask, connection, takeSlot }: AnswerRequest,
  rollouts: number,
): Promise<CallAnswer | Ending> {
  const release = await takeSlot();
  const content = await readContent(deps, result, connection);
  const own = unjudgedCause(result);
  // Only an answer that would carry the conversation needs the artifact.
  const needed = own === null || decideEnding(own, mode, { maskable: honoursMask, rollouts }) === 'masked';
  const isLost = needed && content === null && result.artifact !== null && isSample(mode, rollout);
  const cause = isLost ? UNREADABLE : (own ?? withoutTokens(result, content, mode, rollout));
  if (cause === null) return { result, content, cause, unjudged: null, rollout };
  const maskable = honoursMask && hasTrainedTurn(content);
  const ending = decideEnding(cause, mode, { maskable, rollouts });
  if (ending === 'failure' || ending === 'masked') {
    return { result, content, cause, unjudged: { ...cause, shown: ending }, rollout };
  }
  release();
  return { cause, ending };
}

/** A store may fail once: a rollout that was judged is not run again for that. */
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
      log.warn(context, 'the artifact cannot be read');
      if (reads === READS) return null;
      await connection.sleep(READ_AGAIN_MS);
    }
  }
}

/** There may be a sample, and nobody here can read it now. */
const UNREADABLE: Cause = {
  class: 'artifact_unreadable',
  message: 'it was run, but its trajectory cannot be read',
  kind: 'passing',
};

/** Whether its caller trains on it. */
const isSample = (mode: FailureMode, rollout: CallRollout): boolean =>
  isTraining(mode) && rollout.run.policy !== null;

/** Judged, but no sample that a trainer could take: with a policy there must be tokens of it. */
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
