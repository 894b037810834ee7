/** Facts that a foreign format has no field for. The export writes them as `swefarm`, and the import reads them. Token ids are omitted. */
import type { Trajectory, Turn } from '@swefarm/shared';
import type { OutputLine } from '../output/line.ts';
import type { ExportedRollout, Provenance } from './rollout.ts';

export type CarriedTurn = Omit<Turn, 'tokens' | 'message'>;

export const carriedTurn = ({ tokens: _tokens, message: _message, ...turn }: Turn): CarriedTurn => turn;

/** Fields of an output line that an import cannot derive. */
export type CarriedLine = Pick<
  OutputLine,
  'family' | 'seconds' | 'finished_at' | 'tokens' | 'turns' | 'runtime' | 'facts' | 'agent'
>;

export type CarriedRollout = Provenance & {
  line: CarriedLine;
  /** Absent if the format stores no trajectory. */
  trajectory?: Pick<Trajectory, 'endpoint' | 'sampling' | 'tools' | 'limit' | 'exit_status'>;
};

export function carriedFacts({ provenance, line }: ExportedRollout) {
  const { family, seconds, finished_at, tokens, turns, runtime, facts, agent } = line;
  return { ...provenance, line: { family, seconds, finished_at, tokens, turns, runtime, facts, agent } };
}

export function carriedRollout(rollout: ExportedRollout) {
  const { endpoint = null, sampling, tools, limit, exit_status = null } = rollout.content?.trajectory ?? {};
  return { ...carriedFacts(rollout), trajectory: { endpoint, sampling, tools, limit, exit_status } };
}

/** Returns the facts that swefarm wrote into a file; null: another program wrote the file. */
export function carriedIn(value: unknown): CarriedRollout | null {
  const found = value as Partial<CarriedRollout> | null | undefined;
  return typeof found?.rollout_id === 'string' && found.line ? (found as CarriedRollout) : null;
}
