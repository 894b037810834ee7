/**
 * Finds the exit code of the tests in a log by the pattern of a row: plain text around one group of digits. A search for plain text takes
 * linear time; a regular expression from a row could take exponential time.
 */

type ExitPattern = { before: string; after: string };

const GROUP = /\((?:-\?)?(?:\\d|\[0-9\])\+\)/;
const ESCAPED = /\\([^\w\s])/g;
const SPECIAL = /[\\()[\]{}*+?|^$]/;
const PLAIN_DOT = /(?<!\\)\./;

/** Returns null if the pattern does not have the form of `OPENSWE_EXIT_CODE=(\d+)`. */
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

/** Returns the last number that the pattern finds; null if there is none, or if the number has more than 9 digits. */
export function lastExitCode({ before, after }: ExitPattern, log: string): number | null {
  for (let at = log.lastIndexOf(before); at >= 0; at = at === 0 ? -1 : log.lastIndexOf(before, at - 1)) {
    const found = /^-?\d+/.exec(log.slice(at + before.length, at + before.length + 12))?.[0];
    if (found === undefined || !log.startsWith(after, at + before.length + found.length)) continue;
    return /^-?\d{1,9}$/.test(found) ? Number(found) : null;
  }
  return null;
}
