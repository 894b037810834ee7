/** How many tokens one answer may have: what the run allows, held to what is left of the context. */
import { WireFault } from './fault.ts';

/** Who knows how long a sequence may be. */
export type Limits = {
  /** Tokens of prompt and answer that the run allows; null: no limit of its own. */
  contextLimit: number | null;
  /** Tokens after the first prompt that the run allows; null: no such budget. */
  sequenceBudget: number | null;
  /** The same as `contextLimit`, by the server (`max_model_len`); null when it does not tell. Asked when it is wanted. */
  modelLength: () => Promise<number | null>;
};

export const NO_LIMITS: Limits = { contextLimit: null, sequenceBudget: null, modelLength: async () => null };

/** Tokens of prompt and answer together, after a first prompt of `first`; null when nobody tells. */
export async function sequenceLimit(
  { contextLimit, sequenceBudget, modelLength }: Limits,
  first: number,
): Promise<number | null> {
  const budget = sequenceBudget === null ? null : first + sequenceBudget;
  const known = [contextLimit, budget, await modelLength()].filter((limit) => limit !== null);
  return known.length > 0 ? Math.min(...known) : null;
}

/**
 * What to ask for after a prompt of so many tokens; null when nothing limits it.
 *
 * @throws WireFault `no_room` when there is no room for one token
 */
export function roomAfter(prompt: number, limit: number | null, wanted: number | null): number | null {
  if (limit === null) return wanted;
  if (prompt >= limit)
    throw new WireFault(
      'no_room',
      `the prompt has ${prompt} tokens, and prompt and answer may have ${limit}`,
    );
  return Math.min(wanted ?? Number.POSITIVE_INFINITY, limit - prompt);
}
