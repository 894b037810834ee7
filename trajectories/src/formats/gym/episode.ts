/** Writes the answer to an episode request (nemo_gym/episode_types.py): the fields of the request, and either a result or a failure. */
import { FAILURES, type FailureClass, jsonText } from '@swefarm/shared';
import type { Piece } from './answer.ts';
import type { Episode } from './request.ts';
import type { Cause } from './unjudged.ts';

/** Maximum length of `failure_reason` in Gym. */
const REASON_CHARACTERS = 2000;

/** Wraps the pieces of a `/run` answer as the result of an episode. */
export function* episodePieces(episode: Episode, result: Iterable<Piece>): Generator<Piece> {
  yield `${jsonText(episode).slice(0, -1)},"result":`;
  yield* result;
  yield '}';
}

/**
 * Returns the answer for a rollout without a verdict. `terminal`: Gym and NeMo RL must not request the rollout again. In training, every
 * cause that would repeat is terminal. In a collection, only faults of the instance are, because settings may change before a resume.
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

/** Returns Gym's name of the failure (nemo_gym/failure_kinds.py); if Gym has none, the farm's name with the prefix `swe_farm:`. */
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
