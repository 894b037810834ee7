/**
 * Text as Python sees it: the harnesses are written in Python, and a verdict may hang on what counts as a blank.
 * Everything here is linear in its input, for the input is written by the model's code.
 */

/** What str.isspace() and `\s` mean in Python; JavaScript's `\s` lacks \x1c-\x1f and \x85 and adds U+FEFF. */
export const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const SPACES = new RegExp(`[${SPACE}]+`);

/** Lines between \n characters only, one at a time: a log of 50 MB is never held as an array of lines. */
export function* linesOf(text: string): Generator<string> {
  let start = 0;
  for (;;) {
    const end = text.indexOf('\n', start);
    if (end < 0) break;
    yield text.slice(start, end);
    start = end + 1;
  }
  yield text.slice(start);
}

/** What reading a file in text mode does: \r\n and a lone \r become \n. */
export const universalNewlines = (text: string): string =>
  text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;

/** Of one character; false for none. */
export function isSpace(char: string | undefined): boolean {
  if (char === undefined) return false;
  const code = char.charCodeAt(0);
  if (code < 0x80) return code === 0x20 || (code >= 9 && code <= 13) || (code >= 0x1c && code <= 0x1f);
  return SPACES.test(char);
}

export function stripStart(text: string): string {
  let start = 0;
  while (start < text.length && isSpace(text[start])) start++;
  return text.slice(start);
}

export function stripEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace(text[end - 1])) end--;
  return text.slice(0, end);
}

export const strip = (text: string): string => stripEnd(stripStart(text));

/** Python's `line.split()`: fields between runs of blanks, no empty ones; no more than `limit` of them. */
export function fields(line: string, limit = Number.POSITIVE_INFINITY): string[] {
  const found: string[] = [];
  let at = 0;
  while (found.length < limit) {
    while (at < line.length && isSpace(line[at])) at++;
    if (at >= line.length) break;
    const start = at;
    while (at < line.length && !isSpace(line[at])) at++;
    found.push(line.slice(start, at));
  }
  return found;
}

/** Text before the first `separator`, or all of it. */
export function before(text: string, separator: string): string {
  const at = text.indexOf(separator);
  return at < 0 ? text : text.slice(0, at);
}

/** Number of blanks a line begins with. */
export const indentOf = (line: string): number => line.length - stripStart(line).length;
