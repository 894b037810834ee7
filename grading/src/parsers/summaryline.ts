/** Reads the last line in which pytest counts its tests, as AweAgent (bd17814) does. */
import { withoutEscapes } from '../text/escapes.ts';
import { linesOf } from '../text/pythontext.ts';

const COUNT =
  /(?<![\p{L}\p{N}_])(\p{Nd}{1,9}) (passed|failed|errors?|skipped|warnings?|xfailed|xpassed|deselected)(?![\p{L}\p{N}_])/u;
const COUNTS = new RegExp(COUNT, 'gu');
const WORD = /^[a-z]+?(?=s?$)/;

export type PytestCounts = {
  /** Number of tests for each word in the singular (`error`). */
  counts: ReadonlyMap<string, number>;
  /** Whether at least one test passed, and none failed or had an error. */
  allPassed: boolean;
};

export function pytestCounts(log: string): PytestCounts {
  let last: string | null = null;
  for (const line of linesOf(withoutEscapes(log))) {
    if (COUNT.test(line)) last = line;
  }
  const counts = new Map<string, number>();
  for (const [, number, word = ''] of (last ?? '').matchAll(COUNTS)) {
    const singular = WORD.exec(word)?.[0] ?? word;
    counts.set(singular, Number(number));
  }
  const count = (word: string): number => counts.get(word) ?? 0;
  return { counts, allPassed: count('passed') > 0 && count('failed') === 0 && count('error') === 0 };
}
