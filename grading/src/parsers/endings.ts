/** Removes the suffixes that runners append to names of tests. Searches by index: lazy patterns would be quadratic on hostile lines. */
import { isSpace, S, stripEnd } from '../text/pythontext.ts';

/** Returns `name` for `name (text)` if `inside` matches `text`; otherwise returns the argument unchanged. */
export function dropParen(text: string, inside: RegExp): string {
  if (!text.endsWith(')')) return text;
  const open = text.lastIndexOf('(');
  if (open < 2 || !isSpace(text[open - 1]) || !inside.test(text.slice(open + 1, -1))) return text;
  return text.slice(0, open - 1);
}

/** Removes the text from the last bracket on, and the blanks before the bracket, if `pattern` matches that text. */
export function dropSuffix(text: string, bracket: '(' | '[', pattern: RegExp): string {
  const open = text.lastIndexOf(bracket);
  return open > 0 && pattern.test(text.slice(open)) ? stripEnd(text.slice(0, open)) : text;
}

/** Returns `name` for `name (text)` with at least one character of `text`; null for any other form. */
export function beforeParen(text: string): string | null {
  if (!text.endsWith(')')) return null;
  const open = text.lastIndexOf(' (', text.length - 4);
  return open > 0 ? text.slice(0, open) : null;
}

/** Matches `12 ms` and `3s`, the text in the parentheses after a name. */
export const MILLISECONDS = new RegExp(`^\\p{Nd}+${S}*m?s$`, 'u');

const UNIT_AT_END = new RegExp(`(?:ms|s)${S}*$`);

/** Removes a time at the end, as in `name (12 ms)` and `name 1.5s`. In a number such as `1.2.3s`, only `2.3s` is the time. */
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
/** Pattern of a number with an optional decimal part. */
const NUMBER = '\\p{Nd}+(?:\\.\\p{Nd}+)?';
const BRACKETED = new RegExp(`^${S}*${NUMBER}${S}*(?:ms|s)${S}*$`, 'iu');

/** Returns `name` for `name [12 ms]` with the given brackets; otherwise returns the argument unchanged. */
export function dropBracketedTime(text: string, open: '[' | '(', close: ']' | ')'): string {
  const trimmed = stripEnd(text);
  if (!trimmed.endsWith(close)) return text;
  const at = trimmed.lastIndexOf(open);
  return at >= 0 && BRACKETED.test(trimmed.slice(at + 1, -1)) ? stripEnd(trimmed.slice(0, at)) : text;
}
