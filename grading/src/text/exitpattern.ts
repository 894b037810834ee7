/**
 * The patterns by which a row may say where a log holds the exit code of its tests: plain text around one group of digits. A regular
 * expression of a stranger could take for ever on a long log; this form is found by a search for its text.
 */

export type ExitPattern = { before: string; after: string };

const GROUP = /\((?:-\?)?(?:\\d|\[0-9\])\+\)/;
const ESCAPED = /\\([^\w\s])/g;
/** Of a regular expression, and of no plain text. */
const SPECIAL = /[\\()[\]{}*+?|^$]/;
const PLAIN_DOT = /(?<!\\)\./;

/** Null when the pattern is not of that form: `OPENSWE_EXIT_CODE=(\d+)`. */
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

/** The number that the pattern finds last, as far as it has at most 9 digits; null without one. */
export function lastExitCode({ before, after }: ExitPattern, log: string): number | null {
  for (let at = log.lastIndexOf(before); at >= 0; at = at === 0 ? -1 : log.lastIndexOf(before, at - 1)) {
    const found = /^-?\d+/.exec(log.slice(at + before.length, at + before.length + 12))?.[0];
    if (found === undefined || !log.startsWith(after, at + before.length + found.length)) continue;
    return /^-?\d{1,9}$/.test(found) ? Number(found) : null;
  }
  return null;
}
