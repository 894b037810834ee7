/**
 * What no field of a foreign format holds, and what comes back with an import: written as `swefarm` where the format allows fields of
 * one's own. Token ids are not among it: the format `tokens` has them.
 */
import type { Trajectory, Turn } from '@swefarm/shared';
import type { OutputLine } from '../output/line.ts';
import type { ExportedRollout, Provenance } from './rollout.ts';

/** A turn without its tokens and its place. */
export type CarriedTurn = Omit<Turn, 'tokens' | 'message'>;

export const carriedTurn = ({ tokens: _tokens, message: _message, ...turn }: Turn): CarriedTurn => turn;

/** The fields of a line that an import cannot work out again. */
export type CarriedLine = Pick<
  OutputLine,
  'family' | 'seconds' | 'finished_at' | 'tokens' | 'turns' | 'runtime' | 'facts'
>;

export type CarriedRollout = Provenance & {
  line: CarriedLine;
  /** Absent where the format has no trajectory. */
  trajectory?: Pick<Trajectory, 'endpoint' | 'sampling' | 'tools' | 'limit' | 'exit_status'>;
};

export function carriedFacts({ provenance, line }: ExportedRollout): CarriedRollout {
  const { family, seconds, finished_at, tokens, turns, runtime, facts } = line;
  const known = family === undefined ? {} : { family };
  return { ...provenance, line: { ...known, seconds, finished_at, tokens, turns, runtime, facts } };
}

export function carriedRollout(rollout: ExportedRollout): CarriedRollout {
  const { endpoint = null, sampling, tools, limit, exit_status = null } = rollout.content?.trajectory ?? {};
  return {
    ...carriedFacts(rollout),
    trajectory: {
      endpoint,
      ...(sampling === undefined ? {} : { sampling }),
      ...(tools === undefined ? {} : { tools }),
      ...(limit === undefined ? {} : { limit }),
      exit_status,
    },
  };
}

/** What swefarm had written into a file; null: another program made it. */
export function carriedIn(value: unknown): CarriedRollout | null {
  const found = value as Partial<CarriedRollout> | null | undefined;
  return typeof found?.rollout_id === 'string' && found.line ? (found as CarriedRollout) : null;
}
