/** The sampled tokens of one answer: ids, log-probabilities, and the cut at max_tokens. */
import { hash32, unit } from './random.ts';
import type { Tokenizer, Tokens } from './tokenizer.ts';
import type { TurnText } from './turntext.ts';

export type Generation = {
  text: TurnText;
  /** Includes the end token when the answer ended by itself. */
  tokens: Tokens;
  /** Decimal texts in (-5, 0), always with a point; one for each token. */
  logProbs: readonly string[];
};

/** Tokenises the answer within a budget of tokens. `seed` determines the log-probabilities. */
export function generate(
  text: TurnText,
  tokenizer: Tokenizer,
  endId: number,
  budget: number,
  seed: number,
): Generation {
  const spoken = tokenizer.encode(text.raw);
  const ended = text.finish !== 'length' && spoken.ids.length < budget;
  if (ended) {
    const ids = new Int32Array(spoken.ids.length + 1);
    ids.set(spoken.ids);
    ids[ids.length - 1] = endId;
    const json = spoken.json === '' ? String(endId) : `${spoken.json},${endId}`;
    return { text, tokens: { ids, json }, logProbs: logProbsOf(ids, seed) };
  }
  if (spoken.ids.length <= budget) {
    return { text: cutShort(text, text.raw), tokens: spoken, logProbs: logProbsOf(spoken.ids, seed) };
  }
  const ids = spoken.ids.slice(0, budget);
  const tokens = { ids, json: ids.join(',') };
  return { text: cutShort(text, tokenizer.decode(ids)), tokens, logProbs: logProbsOf(ids, seed) };
}

/** A cut answer becomes text, because no server parses half a call or half a thought. */
function cutShort(text: TurnText, raw: string): TurnText {
  if (text.finish === 'length' && raw === text.raw) return text;
  return { raw, content: raw, reasoning: null, toolCalls: [], finish: 'length' };
}

const logProbsOf = (ids: Int32Array, seed: number): string[] =>
  Array.from(ids, (id, position) =>
    (-0.0005 - 4.999 * unit((seed ^ Math.imul(id + 1, 0x85ebca6b)) | 0, position)).toFixed(6),
  );

/** A rollout that asks twice gets the same log-probabilities; another rollout gets different ones. */
export const generationSeed = (rollout: string, turn: number, seed: number): number =>
  hash32(`${rollout}#${turn}`, seed);

/** Returns the rest of a generation whose first tokens are already in the prompt; null when the prompt has other tokens. */
export function restOf(whole: Generation, begun: Int32Array, tokenizer: Tokenizer): Generation | null {
  if (begun.length === 0) return whole;
  if (begun.some((id, at) => whole.tokens.ids[at] !== id)) return null;
  return sliced(whole, begun.length, whole.tokens.ids.length, whole.text.finish, tokenizer);
}

/** Returns the first half of a generation, as an engine does that is paused for new weights. */
export function brokenOff(whole: Generation, tokenizer: Tokenizer): Generation {
  return sliced(whole, 0, whole.tokens.ids.length >> 1, 'abort', tokenizer);
}

function sliced(
  { text, tokens, logProbs }: Generation,
  from: number,
  to: number,
  finish: TurnText['finish'],
  tokenizer: Tokenizer,
): Generation {
  const ids = tokens.ids.slice(from, to);
  // The token that ends an answer is not part of the text.
  const ended = to === tokens.ids.length && text.finish !== 'length';
  const raw = tokenizer.decode(ended ? ids.subarray(0, -1) : ids);
  return {
    text: { raw, content: raw, reasoning: null, toolCalls: [], finish },
    tokens: { ids, json: ids.join(',') },
    logProbs: logProbs.slice(from, to),
  };
}
