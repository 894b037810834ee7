/**
 * What no field of a foreign format holds, and what comes back with an import: written as `swefarm` where the format allows fields of
 * one's own. Token ids are not among it: the format `tokens` has them.
 */
import type { Trajectory, Turn } from '@swefarm/shared';
import type { ExportedRollout, Provenance } from './rollout.ts';

/** A turn without its tokens and its place. */
export type CarriedTurn = Omit<Turn, 'tokens' | 'message'>;

export const carriedTurn = ({ tokens: _tokens, message: _message, ...turn }: Turn): CarriedTurn => turn;

export type CarriedRollout = Provenance & {
  trajectory: Pick<Trajectory, 'endpoint' | 'sampling' | 'tools' | 'limit' | 'exit_status'>;
};

export function carriedRollout({ provenance, content }: ExportedRollout): CarriedRollout {
  const { endpoint = null, sampling, tools, limit, exit_status = null } = content?.trajectory ?? {};
  return {
    ...provenance,
    trajectory: {
      endpoint,
      ...(sampling === undefined ? {} : { sampling }),
      ...(tools === undefined ? {} : { tools }),
      ...(limit === undefined ? {} : { limit }),
      exit_status,
    },
  };
}
