/** Removes suffixes that runners append to a test's name. Written by hand: lazy patterns are quadratic on hostile lines. */
import { isSpace, SPACE, stripEnd } from '../text/pythontext.ts';

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

const UNIT_AT_END = new RegExp(`(?:ms|s)[${SPACE}]*$`);

/**
 * Drops a time at the end: `name (12 ms)`, `name 1.5s`, in or without round brackets and with or without a blank. Of a number with
 * several points the last two parts are the time.
 */
export function dropTime(text: string): string {
  let end = stripEnd(text).length;
  if (text[end - 1] === ')') end = stripEnd(text.slice(0, end - 1)).length;
  const unit = UNIT_AT_END.exec(text.slice(Math.max(end - 2, 0), end));
  if (!unit) return text;
  end = stripEnd(text.slice(0, end - (text[end - 2] === 'm' ? 2 : 1))).length;
  const digits = (to: number): number => {
    let from = to;
    while (from > 0 && DIGIT.test(text[from - 1] ?? '')) from--;
    return from;
  };
  let start = digits(end);
  if (start === end) return text;
  if (text[start - 1] === '.' && digits(start - 1) < start - 1) start = digits(start - 1);
  let left = stripEnd(text.slice(0, start));
  if (left.endsWith('(')) left = stripEnd(left.slice(0, -1));
  return left;
}

const DIGIT = /^\p{Nd}$/u;
/** A number that may have a decimal part, as `\d+(?:\.\d+)?`. */
const NUMBER = '\\p{Nd}+(?:\\.\\p{Nd}+)?';
const BRACKETED = new RegExp(`^[${SPACE}]*${NUMBER}[${SPACE}]*(?:ms|s)[${SPACE}]*$`, 'iu');

/** `name [12 ms]` or `name (12 ms)`, by the brackets given, with any blanks; otherwise the text is unchanged. */
export function dropBracketedTime(text: string, open: '[' | '(', close: ']' | ')'): string {
  const trimmed = stripEnd(text);
  if (!trimmed.endsWith(close)) return text;
  const at = trimmed.lastIndexOf(open);
  return at >= 0 && BRACKETED.test(trimmed.slice(at + 1, -1)) ? stripEnd(trimmed.slice(0, at)) : text;
}
