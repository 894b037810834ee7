/**
 * Text functions with the semantics of Python, in which the harnesses are written: a verdict may depend on what counts as whitespace.
 * All functions take linear time, because the model's code can write the input.
 */

/** Characters that Python's `\s` matches. JavaScript's `\s` does not match \x1c-\x1f and \x85, but matches U+FEFF. */
export const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
/** Character class that matches one whitespace character. */
export const S = `[${SPACE}]`;
const SPACES = new RegExp(`${S}+`);

/** Yields one line at a time, so that a log of 50 MB never becomes an array. Only \n ends a line. */
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

/** Maximum length of a line that a pattern gets. V8 throws RangeError for `.+` over 8 million characters. */
const MOST_LINE = 4_000_000;

/** Yields the lines like {@link linesOf}, transformed by `clean`, and then without the characters beyond the maximum length of a line. */
export function* shortLines(text: string, clean?: (line: string) => string): Generator<string> {
  for (const raw of linesOf(text)) {
    const line = clean ? clean(raw) : raw;
    yield line.length > MOST_LINE ? line.slice(0, MOST_LINE) : line;
  }
}

export const strippedLines = (text: string): Generator<string> => shortLines(text, strip);

/** Converts \r\n and \r to \n, as Python's text mode does. */
export const universalNewlines = (text: string): string =>
  text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;

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

/** Splits a line as Python's `line.split()` does, but returns only the first `limit` fields. */
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

/** Returns the text before the first `separator`, or the whole text. */
export function before(text: string, separator: string): string {
  const at = text.indexOf(separator);
  return at < 0 ? text : text.slice(0, at);
}

export const indentOf = (line: string): number => line.length - stripStart(line).length;
