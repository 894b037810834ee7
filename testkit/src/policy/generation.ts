/** What the model sampled for one answer: token ids, their log-probabilities, and where max_tokens cuts them. */
import { hash32, unit } from './random.ts';
import type { Tokenizer, Tokens } from './tokenizer.ts';
import type { TurnText } from './turntext.ts';

export type Generation = {
  said: TurnText;
  /** End token included when the answer ended by itself. */
  tokens: Tokens;
  /** Decimal texts in (-5, 0), always with a point; one for each token. */
  logProbs: readonly string[];
};

/** Tokenises what was said, within a budget of tokens. `seed` makes the log-probabilities. */
export function generate(
  said: TurnText,
  tokenizer: Tokenizer,
  endId: number,
  budget: number,
  seed: number,
): Generation {
  const spoken = tokenizer.encode(said.raw);
  const ended = said.finish !== 'length' && spoken.ids.length < budget;
  if (ended) {
    const ids = new Int32Array(spoken.ids.length + 1);
    ids.set(spoken.ids);
    ids[ids.length - 1] = endId;
    const json = spoken.json === '' ? String(endId) : `${spoken.json},${endId}`;
    return { said, tokens: { ids, json }, logProbs: logProbsOf(ids, seed) };
  }
  if (spoken.ids.length <= budget) {
    return { said: cutShort(said, said.raw), tokens: spoken, logProbs: logProbsOf(spoken.ids, seed) };
  }
  const ids = spoken.ids.slice(0, budget);
  const tokens = { ids, json: ids.join(',') };
  return { said: cutShort(said, tokenizer.decode(ids)), tokens, logProbs: logProbsOf(ids, seed) };
}

/** A cut answer is text: no server reads half a call or half a thought. */
function cutShort(said: TurnText, raw: string): TurnText {
  if (said.finish === 'length' && raw === said.raw) return said;
  return { raw, content: raw, reasoning: null, toolCalls: [], finish: 'length' };
}

const logProbsOf = (ids: Int32Array, seed: number): string[] =>
  Array.from(ids, (id, place) =>
    (-0.0005 - 4.999 * unit((seed ^ Math.imul(id + 1, 0x85ebca6b)) | 0, place)).toFixed(6),
  );

/** The same rollout hears the same log-probabilities when it asks twice; another rollout hears others. */
export const generationSeed = (rollout: string, turn: number, seed: number): number =>
  hash32(`${rollout}#${turn}`, seed);

/** What is still to be said of a generation whose first tokens stand in the prompt already; null when they are others. */
export function restOf(whole: Generation, begun: Int32Array, tokenizer: Tokenizer): Generation | null {
  if (begun.length === 0) return whole;
  if (begun.some((id, at) => whole.tokens.ids[at] !== id)) return null;
  return sliced(whole, begun.length, whole.tokens.ids.length, whole.said.finish, tokenizer);
}

/** The first half of it, as an engine leaves it that is paused for new weights. */
export function brokenOff(whole: Generation, tokenizer: Tokenizer): Generation {
  return sliced(whole, 0, whole.tokens.ids.length >> 1, 'abort', tokenizer);
}

function sliced(
  { said, tokens, logProbs }: Generation,
  from: number,
  to: number,
  finish: TurnText['finish'],
  tokenizer: Tokenizer,
): Generation {
  const ids = tokens.ids.slice(from, to);
  // The token that ends an answer is no text.
  const ended = to === tokens.ids.length && said.finish !== 'length';
  const raw = tokenizer.decode(ended ? ids.subarray(0, -1) : ids);
  return {
    said: { raw, content: raw, reasoning: null, toolCalls: [], finish },
    tokens: { ids, json: ids.join(',') },
    logProbs: logProbs.slice(from, to),
  };
}
