/** Text operations with the results of Python's, on which the editor of SWE-agent is built. Lengths and columns count code points. */

const TAB = 8;

/** Replaces tabs by spaces up to the next multiple of 8 columns, as `str.expandtabs`. */
export function expandTabs(text: string): string {
  if (!text.includes('\t')) return text;
  const pieces: string[] = [];
  let from = 0;
  let column = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x09) {
      const width = TAB - (column % TAB);
      pieces.push(text.slice(from, at), ' '.repeat(width));
      column += width;
      from = at + 1;
    } else if (unit === 0x0a || unit === 0x0d) column = 0;
    // The second unit of a pair is no character of its own.
    else if ((unit & 0xfc00) !== 0xdc00) column++;
  }
  return pieces.join('') + text.slice(from);
}

/** Returns the first `count` code points. */
export function firstOf(text: string, count: number): string {
  if (text.length <= count) return text;
  let at = 0;
  for (let seen = 0; seen < count && at < text.length; seen++)
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return text.slice(0, at);
}

const LINE_ENDS = '\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029';

/** Returns the number of lines, as `len(text.splitlines())`. */
export function countLines(text: string): number {
  let ends = 0;
  for (let at = 0; at < text.length; at++) {
    if (LINE_ENDS.includes(text[at] ?? '') && !(text[at] === '\n' && text[at - 1] === '\r')) ends++;
  }
  return text === '' || LINE_ENDS.includes(text.at(-1) ?? '') ? ends : ends + 1;
}

/** Returns a path as `str(pathlib.PurePosixPath(path))`: without `.` and repeated slashes. `..` stays. */
export function normalPath(path: string): string {
  const root = /^\/\/(?!\/)/.test(path) ? '//' : path.startsWith('/') ? '/' : '';
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  return root + parts.join('/') || '.';
}

/** Returns a list of numbers as Python prints it. */
export const listOf = (numbers: readonly number[]): string => `[${numbers.join(', ')}]`;
