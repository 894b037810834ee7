/** Facts without a field in a foreign format, written as `swefarm` and read by an import. The format `tokens` alone has token ids. */
import type { Trajectory, Turn } from '@swefarm/shared';
import type { OutputLine } from '../output/line.ts';
import type { ExportedRollout, Provenance } from './rollout.ts';

export type CarriedTurn = Omit<Turn, 'tokens' | 'message'>;

export const carriedTurn = ({ tokens: _tokens, message: _message, ...turn }: Turn): CarriedTurn => turn;

/** The fields of a line that an import cannot derive. */
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

/** The facts that swefarm wrote into a file; null: another program wrote the file. */
export function carriedIn(value: unknown): CarriedRollout | null {
  const found = value as Partial<CarriedRollout> | null | undefined;
  return typeof found?.rollout_id === 'string' && found.line ? (found as CarriedRollout) : null;
}
