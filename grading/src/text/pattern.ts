/** Regular expressions in the syntax of Python's `re`, so that a reader can copy the pattern of the harness. */
import { SPACE } from './pythontext.ts';

const CLASSES: Record<string, string> = { '\\s': SPACE, '\\d': '\\p{Nd}', '\\w': '\\p{L}\\p{N}_' };

/** Converts `\s`, `\S`, `\d`, `\w` and `.`, which Python and JavaScript match differently. */
function converted(source: string): string {
  let inClass = false;
  return source.replace(/\\.|[.[\]]/g, (token) => {
    if (token === '[' || token === ']') inClass = token === '[';
    const members = CLASSES[token];
    if (members !== undefined) return inClass ? members : `[${members}]`;
    if (token === '\\S') return `[^${SPACE}]`;
    return token === '.' && !inClass ? '[^\\n]' : token;
  });
}

/** Compiles a pattern with the flag u: py`^\d+\) (?<name>.+)`. */
export const py = (text: TemplateStringsArray, ...parts: string[]): RegExp =>
  new RegExp(converted(String.raw(text, ...parts)), 'u');

/** Compiles a pattern of the end of a text. The pattern is matched backwards from the end, so even `\s*\d+s` takes linear time. */
export const ending = (text: TemplateStringsArray, ...parts: string[]): RegExp =>
  new RegExp(`$(?<=(${converted(String.raw(text, ...parts))}))`, 'u');

/**
 * Yields each match of `open` with the next match of `close` behind it. The next `open` begins behind `close`. Both patterns have the flag g.
 * With the flag u, V8 throws RangeError if `[^]*?` between the two passes 8 million characters.
 */
export function* pairs(
  text: string,
  open: RegExp,
  close: RegExp,
): Generator<[open: RegExpExecArray, close: RegExpExecArray]> {
  const [starts, ends] = [new RegExp(open), new RegExp(close)];
  for (let start = starts.exec(text); start; start = starts.exec(text)) {
    ends.lastIndex = starts.lastIndex;
    const end = ends.exec(text);
    if (!end) return;
    yield [start, end];
    starts.lastIndex = ends.lastIndex;
  }
}

/** Returns the text without the end that matches a pattern of {@link ending}. */
export const withoutEnd = (text: string, end: RegExp): string =>
  text.slice(0, text.length - (end.exec(text)?.[1]?.length ?? 0));
