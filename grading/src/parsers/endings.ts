/** Removes suffixes that runners append to a test's name. Written by hand: lazy patterns are quadratic on hostile lines. */
import { isSpace, SPACE } from '../text/pythontext.ts';

/**
 * `name (inside)` → `name`, when `inside` matches; otherwise the text is unchanged. At least one character of the name must
 * remain.
 */
export function dropParen(text: string, inside: RegExp): string {
  if (!text.endsWith(')')) return text;
  const open = text.lastIndexOf('(');
  if (open < 2 || !isSpace(text[open - 1]) || !inside.test(text.slice(open + 1, -1))) return text;
  return text.slice(0, open - 1);
}

/** `name (anything)` → `name`, split at the last ` (` with content; null when the text ends differently. */
export function beforeParen(text: string): string | null {
  if (!text.endsWith(')')) return null;
  const open = text.lastIndexOf(' (', text.length - 4);
  return open > 0 ? text.slice(0, open) : null;
}

/** `12 ms`, `3s`: the content of the brackets after a name. */
export const MILLISECONDS = new RegExp(`^\\p{Nd}+[${SPACE}]*m?s$`, 'u');
