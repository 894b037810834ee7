/** Endings that runners put behind a test's name. By hand: lazy patterns over hostile lines are quadratic. */
import { isSpace, SPACE } from '../text/pythontext.ts';

/**
 * `name (inside)` → `name`, when what is inside matches; else the text as it is. At least one character of the name
 * must remain.
 */
export function dropParen(text: string, inside: RegExp): string {
  if (!text.endsWith(')')) return text;
  const open = text.lastIndexOf('(');
  if (open < 2 || !isSpace(text[open - 1]) || !inside.test(text.slice(open + 1, -1))) return text;
  return text.slice(0, open - 1);
}

/** `name (anything)` → `name`, split at the last ` (` that has something in it; null when the text ends otherwise. */
export function beforeParen(text: string): string | null {
  if (!text.endsWith(')')) return null;
  const open = text.lastIndexOf(' (', text.length - 4);
  return open > 0 ? text.slice(0, open) : null;
}

/** `12 ms`, `3s`: what stands inside the brackets behind a name. */
export const MILLISECONDS = new RegExp(`^\\p{Nd}+[${SPACE}]*m?s$`, 'u');
