/** The answer to an episode request (nemo_gym/episode_types.py): the request's fields, and exactly one of result and failure. */
import { FAILURES, type FailureClass, jsonText } from '@swefarm/shared';
import type { Piece } from './answer.ts';
import type { Episode } from './request.ts';
import type { Cause } from './unjudged.ts';

/** Gym's limit. */
const REASON_CHARACTERS = 2000;

/** Wraps the pieces of a `/run` answer as the result of an episode. */
export function* episodePieces(episode: Episode, result: Iterable<Piece>): Generator<Piece> {
  yield `${jsonText(episode).slice(0, -1)},"result":`;
  yield* result;
  yield '}';
}

/**
 * A rollout without a verdict. `terminal`: Gym and NeMo RL must not request it again. In a training run every cause that would repeat
 * is terminal; in a collection, whose settings may be corrected before a resume, only faults of the instance are.
 */
export function episodeFailure(episode: Episode, cause: Cause, training: boolean): Record<string, unknown> {
  const { class: name, message, kind, terminal } = cause;
  return {
    ...episode,
    failure: {
      failure_reason: `${name}: ${message}`.slice(0, REASON_CHARACTERS),
      terminal: terminal === true || kind === 'withheld' || (training && kind === 'broken'),
      ...namesOf(cause),
    },
  };
}

/** Gym's names where it has them (nemo_gym/failure_kinds.py), else the farm's name with the prefix `swe_farm:`. */
function namesOf({ class: name, noPersist }: Cause): { failure_kind: string; stage?: string } {
  if (noPersist) return { failure_kind: 'cancelled' };
  const { stage } = FAILURES[name as FailureClass] ?? {};
  const own = `swe_farm:${name}`;
  switch (stage) {
    case 'image':
    case 'instance':
      return { failure_kind: own, stage: 'seed' };
    case 'sandbox':
      return { failure_kind: 'provider_unavailable', stage: 'agent' };
    case 'policy':
      return { failure_kind: POLICY_KINDS[name] ?? own, stage: 'agent' };
    case 'evaluation':
      return { failure_kind: 'verifier_error', stage: 'verification' };
    case 'worker':
      return { failure_kind: name === 'lost' ? 'session_lost' : own, stage: 'agent' };
    default:
      return { failure_kind: own };
  }
}

const POLICY_KINDS: Readonly<Record<string, string>> = {
  policy_unreachable: 'transport_unreachable',
  policy_silent: 'transport_timeout',
  policy_slow: 'agent_timeout',
};
