/** Selects the rows of routed experts that a turn adds, to store them with the turn, and rejects unusable rows. */

import type { PolicyConfig, TurnExperts } from '@swefarm/shared';
import { MOST, RolloutFailure } from '@swefarm/shared';
import {
  describeShape,
  ExpertFormatError,
  type ExpertShape,
  type ExpertsFound,
  ID_BYTES,
  type RoutedExperts,
} from './experts.ts';

/** Treatment of routed experts. `keep`: store them if the endpoint sends them; `require`: fail a turn without them. */
export type ExpertMode = 'drop' | 'keep' | 'require';

export function expertModeOf(policy: Pick<PolicyConfig, 'routed_experts' | 'require_tokens'>): ExpertMode {
  if (policy.routed_experts !== 'auto') return policy.routed_experts;
  return policy.require_tokens ? 'keep' : 'drop';
}

/** Rows that earlier turns stored. `known`: number of tokens with a row. `bytes`: size of all rows. */
export type ExpertLedger = ExpertShape & { known: number; bytes: number };

type TurnPosition = {
  /** Number of the turn from 1, for error messages. */
  turn: number;
  /** Number of tokens of prompt and answer. */
  total: number;
  /** Number of prompt tokens that earlier turns already stored. */
  prefix: number;
};

/**
 * Returns the new rows of one turn and the ledger with these rows; null if no rows are stored.
 *
 * @throws RolloutFailure `policy_tokens` for required rows that are missing, and for unusable rows
 */
export function recordExperts(
  before: ExpertLedger | null,
  found: ExpertsFound | null,
  mode: ExpertMode,
  position: TurnPosition,
): { stored: TurnExperts; ledger: ExpertLedger } | null {
  if (mode === 'drop') return null;
  if (found === null) {
    if (mode === 'keep') return null;
    throw unusable(
      position,
      'there are none; the server must be started to return them (vLLM: --enable-return-routed-experts)',
    );
  }
  if (found.flaw !== undefined) throw unusable(position, found.flaw);
  requireUsable(before, found, position);
  // The row of the last token of an answer is padding or missing until the server reads the next prompt.
  const start = Math.max(0, Math.min(before?.known ?? 0, position.prefix - 1));
  const { dtype, layers, top_k } = found;
  const size = (found.rows - start) * layers * top_k * ID_BYTES[dtype];
  const bytes = (before?.bytes ?? 0) + size;
  if (bytes > MOST.expertBytes) {
    throw unusable(
      position,
      `with them the rollout has ${bytes} bytes of experts, and the limit is ${MOST.expertBytes}: shorten it (--max-sequence-tokens)`,
    );
  }
  const stored = { dtype, layers, top_k, start, rows: decoded(found, start, position) };
  return { stored, ledger: { dtype, layers, top_k, known: position.total - 1, bytes } };
}

function decoded(found: RoutedExperts, start: number, position: TurnPosition): Int8Array {
  try {
    return found.decode(start, found.rows);
  } catch (error) {
    throw error instanceof ExpertFormatError ? unusable(position, error.message) : error;
  }
}

function requireUsable(before: ExpertLedger | null, found: RoutedExperts, position: TurnPosition): void {
  const { rows } = found;
  const { total } = position;
  // The model did not process the last sampled token, so some servers omit its row and others pad it.
  if (rows !== total && rows !== total - 1) {
    const less =
      rows < total - 1 ? ' (a server that leaves out the rows of a cached prefix cannot be used)' : '';
    throw unusable(position, `${rows} rows for ${total} tokens, expected one a token or one less${less}`);
  }
  if (before && describeShape(before) !== describeShape(found)) {
    throw unusable(position, `${describeShape(found)}, and earlier turns had ${describeShape(before)}`);
  }
}

const unusable = ({ turn }: TurnPosition, why: string): RolloutFailure =>
  new RolloutFailure('policy_tokens', `turn ${turn}: routed_experts: ${why}`);
