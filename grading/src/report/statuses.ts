/**
 * Limits the size of the test statuses in a report. The code of a patch can write names of any length, and JSON needs up to six
 * characters for one character of a name.
 */

/** Maximum length of a name, equal to the limit for a dataset's program (`programoutput.ts` of shared). */
const NAME_LETTERS = 4_000;
const WORD_LETTERS = 40;
const MOST_TESTS = 200_000;
/** Maximum number of characters of all names and words together, as JSON writes them. */
const MOST_LETTERS = 32 * 1024 ** 2;

type StoredStatuses = {
  map: Record<string, string>;
  /** Number of tests that the report omits; the verdict counts them. */
  omitted: number;
};

/** Returns the statuses in the given order, without the tests that exceed a limit. */
export function boundStatuses(outcomes: ReadonlyMap<string, string>): StoredStatuses {
  const stored: [string, string][] = [];
  let letters = 0;
  for (const [name, word] of outcomes) {
    if (name.length > NAME_LETTERS || word.length > WORD_LETTERS || stored.length === MOST_TESTS) continue;
    const cost = JSON.stringify(name).length + JSON.stringify(word).length;
    if (letters + cost > MOST_LETTERS) continue;
    letters += cost;
    stored.push([name, word]);
  }
  return { map: Object.fromEntries(stored), omitted: outcomes.size - stored.length };
}
