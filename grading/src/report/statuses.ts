/**
 * Bounds the statuses of tests that a report stores. Names of tests come from text that the patch's code writes, and JSON spends up to
 * six characters on one of theirs; a report must stay small enough for every reader of its artifact.
 */

/** As long as the names that a dataset's own program may write (`programoutput.ts` of shared). */
const NAME_LETTERS = 4_000;
const WORD_LETTERS = 40;
const MOST_TESTS = 200_000;
/** Sum over all names and words, as JSON writes them. */
const MOST_LETTERS = 32 * 1024 ** 2;

export type StoredStatuses = {
  /** Test → status word. */
  map: Record<string, string>;
  /** Tests that the report leaves out; the verdict counts them. */
  omitted: number;
};

/** Returns the statuses in their order, without the tests that are beyond a bound. */
export function boundStatuses(outcomes: ReadonlyMap<string, string>): StoredStatuses {
  const kept: [string, string][] = [];
  let letters = 0;
  for (const [name, word] of outcomes) {
    if (name.length > NAME_LETTERS || word.length > WORD_LETTERS || kept.length === MOST_TESTS) continue;
    const cost = JSON.stringify(name).length + JSON.stringify(word).length;
    if (letters + cost > MOST_LETTERS) continue;
    letters += cost;
    kept.push([name, word]);
  }
  return { map: Object.fromEntries(kept), omitted: outcomes.size - kept.length };
}
