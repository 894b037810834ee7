/** Removes the suffixes that runners append to the name of a test. Lazy patterns would be quadratic on hostile lines. */
import { isSpace, S, stripEnd } from '../text/pythontext.ts';

/** `name (inside)` → `name` if `inside` matches and a name remains; otherwise the text is unchanged. */
export function dropParen(text: string, inside: RegExp): string {
  if (!text.endsWith(')')) return text;
  const open = text.lastIndexOf('(');
  if (open < 2 || !isSpace(text[open - 1]) || !inside.test(text.slice(open + 1, -1))) return text;
  return text.slice(0, open - 1);
}

/** Drops the last bracket and the blanks before it if `pattern` matches the text from the bracket on. */
export function dropSuffix(text: string, bracket: '(' | '[', pattern: RegExp): string {
  const open = text.lastIndexOf(bracket);
  return open > 0 && pattern.test(text.slice(open)) ? stripEnd(text.slice(0, open)) : text;
}

/** `name (anything)` → `name`, split at the last ` (` with content; null if the text has another end. */
export function beforeParen(text: string): string | null {
  if (!text.endsWith(')')) return null;
  const open = text.lastIndexOf(' (', text.length - 4);
  return open > 0 ? text.slice(0, open) : null;
}

/** `12 ms`, `3s`: the content of the brackets after a name. */
export const MILLISECONDS = new RegExp(`^\\p{Nd}+${S}*m?s$`, 'u');

const UNIT_AT_END = new RegExp(`(?:ms|s)${S}*$`);

/** Drops a time at the end, as in `name (12 ms)` and `name 1.5s`. Of a number with several points, the last two parts are the time. */
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
const BRACKETED = new RegExp(`^${S}*${NUMBER}${S}*(?:ms|s)${S}*$`, 'iu');

/** `name [12 ms]` → `name`, for the given brackets; otherwise the text is unchanged. */
export function dropBracketedTime(text: string, open: '[' | '(', close: ']' | ')'): string {
  const trimmed = stripEnd(text);
  if (!trimmed.endsWith(close)) return text;
  const at = trimmed.lastIndexOf(open);
  return at >= 0 && BRACKETED.test(trimmed.slice(at + 1, -1)) ? stripEnd(trimmed.slice(0, at)) : text;
}
