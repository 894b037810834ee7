/**
 * Patterns in rows that find the exit code of the tests in a log: plain text around one group of digits. A search for plain text is linear;
 * a regular expression from a row could need exponential time.
 */

type ExitPattern = { before: string; after: string };

const GROUP = /\((?:-\?)?(?:\\d|\[0-9\])\+\)/;
const ESCAPED = /\\([^\w\s])/g;
const SPECIAL = /[\\()[\]{}*+?|^$]/;
const PLAIN_DOT = /(?<!\\)\./;

/** Null if the pattern has another form than `OPENSWE_EXIT_CODE=(\d+)`. */
export function readExitPattern(pattern: string): ExitPattern | null {
  const group = GROUP.exec(pattern);
  if (!group) return null;
  const before = plainText(pattern.slice(0, group.index));
  const after = plainText(pattern.slice(group.index + group[0].length));
  return before === null || after === null || before === '' ? null : { before, after };
}

function plainText(pattern: string): string | null {
  if (SPECIAL.test(pattern.replace(ESCAPED, '')) || PLAIN_DOT.test(pattern)) return null;
  return pattern.replace(ESCAPED, '$1');
}

/** The last number that the pattern finds; null without one, or with more than 9 digits. */
export function lastExitCode({ before, after }: ExitPattern, log: string): number | null {
  for (let at = log.lastIndexOf(before); at >= 0; at = at === 0 ? -1 : log.lastIndexOf(before, at - 1)) {
    const found = /^-?\d+/.exec(log.slice(at + before.length, at + before.length + 12))?.[0];
    if (found === undefined || !log.startsWith(after, at + before.length + found.length)) continue;
    return /^-?\d{1,9}$/.test(found) ? Number(found) : null;
  }
  return null;
}
