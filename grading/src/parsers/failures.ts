/** Reads logs that list only failures (Chart.js, marked, p5.js), and logs of react-pdf, which list test files. */
import { withoutEscapes } from '../text/escapes.ts';
import { py } from '../text/pattern.ts';
import { indentOf, isSpace, linesOf, strip, stripEnd } from '../text/pythontext.ts';
import { byLine, reading, wholeLineForms } from './reader.ts';

/** Reads `Chrome 99.0 (Linux) name FAILED`. The name includes the blank before FAILED. */
export const chartJs = reading((log, found) => {
  const text = withoutEscapes(log);
  let from = 0;
  for (let at = text.indexOf('Chrome', from); at >= 0; at = text.indexOf('Chrome', from)) {
    const hit = chromeFailure(text, at);
    if (hit) found.set(hit.name, 'FAILED');
    from = hit ? hit.end : at + 1;
  }
});

const DIGIT_OR_DOT = py`^[\d.]`;
const isFlat = (char: string | undefined): boolean => isSpace(char) && char !== '\n' && char !== '\r';

function chromeFailure(text: string, at: number): { name: string; end: number } | null {
  let next = at + 'Chrome'.length;
  if (!isSpace(text[next])) return null;
  const version = ++next;
  while (DIGIT_OR_DOT.test(text[next] ?? '')) next++;
  if (next === version || !isFlat(text[next]) || text[next + 1] !== '(') return null;
  const inside = next + 2;
  const newline = text.indexOf('\n', inside);
  const end = newline < 0 ? text.length : newline;
  if (!text.startsWith('FAILED', end - 6)) return null;
  let close = text.indexOf(')', inside + 1);
  while (close >= 0 && close < end && !isFlat(text[close + 1])) close = text.indexOf(')', close + 1);
  if (close < 0 || close + 2 > end - 6) return null;
  return { name: text.slice(close + 2, end - 6), end };
}

/** Reads `12) name` at the start of a line. */
export const marked = wholeLineForms([[py`^\d+\)\s(?<name>.*)`, 'FAILED']], { rename: strip });

/** Reads `PASS file (3.2 s)`. Removes the last time and all text after it; for SWE-rebench V2, only if the line ends in `)`. */
export const reactPdf = byLine((line, found, { dialect }) => {
  const word = line.slice(0, 4);
  if ((word !== 'PASS' && word !== 'FAIL') || !isSpace(line[4])) return;
  const file = line.slice(5);
  const strict = dialect === 'swe-rebench-v2';
  const name = strict && !file.endsWith(')') ? strip(file) : withoutTime(file);
  found.set(name, word === 'PASS' ? 'PASSED' : 'FAILED');
});

const TIMES = [py`^\([\d.]+ms\)`, py`^\([\d.]+\ss\)`, py`^\([\d.]+s\)`];

/** Searches for `(12ms)`, then `(1.2 s)`, then `(1.2s)`. Cuts the text at the last match of the first form that occurs. */
function withoutTime(text: string): string {
  const openings: number[] = [];
  for (let at = text.indexOf('('); at >= 0; at = text.indexOf('(', at + 1)) openings.push(at);
  for (const time of TIMES) {
    const open = openings.findLast((at) => isSpace(text[at - 1]) && time.test(text.slice(at, at + 64)));
    if (open !== undefined) return text.slice(0, open - 1);
  }
  return text;
}

const NUMBERED = py`^\s*\d+\)`;

/** Maximum number of characters that `withoutXml` copies for one log: the harness removes blocks in quadratic time. */
const BUDGET = 200_000_000;

/** Reads `12) suite` and the lines below, each indented deeper, up to a colon. Removes JSON and XML blocks first. */
export const p5js = reading((log, found) => {
  const text = withoutXml(withoutJson(withoutEscapes(log)));
  let start = 0;
  let from = 0;
  for (const line of linesOf(text)) {
    const number = start >= from ? NUMBERED.exec(line) : null;
    if (number) {
      const at = start + number[0].length;
      const body = BODY.exec(text.slice(at, at + 2002))?.[1];
      if (body !== undefined) {
        from = at + body.length + 1;
        if (growsInward(body)) found.set([...linesOf(body)].map(strip).join(':'), 'FAILED');
      }
    }
    start += line.length + 1;
  }
});

/** Matches the text up to the first colon, at most 1,000 characters. */
const BODY = /^([^:]{0,1000}):/u;

function growsInward(body: string): boolean {
  let last = 0;
  for (const line of linesOf(body)) {
    const indent = indentOf(line);
    if (indent <= last) return false;
    last = indent;
  }
  return true;
}

function withoutJson(log: string): string {
  const lines: string[] = [];
  let inObject = false;
  let inList = false;
  for (const line of linesOf(log)) {
    const text = stripEnd(line);
    if (text.endsWith('{')) inObject = true;
    else if (text.endsWith('[')) inList = true;
    else if (text === '}' && inObject) inObject = false;
    else if (text === ']' && inList) inList = false;
    else if (!inObject && !inList && !isWhole(text, '{', '}') && !isWhole(text, '[', ']')) lines.push(line);
  }
  return lines.join('\n');
}

const isWhole = (text: string, open: string, close: string): boolean =>
  text.startsWith(open) && text.endsWith(close);

/** Removes each `<tag>…</tag>`, first to last. Openings of the same tag inside a removed block remain. */
function withoutXml(text: string): string {
  const tag = /<([\p{L}\p{N}_]+)>/gu;
  let rest = text;
  let work = 0;
  const hopeless = new Set<string>();
  for (;;) {
    const match = tag.exec(rest);
    if (!match) return rest;
    const name = match[1] ?? '';
    const close = hopeless.has(name) ? -1 : rest.indexOf(`</${name}>`, tag.lastIndex);
    if (close < 0) {
      hopeless.add(name);
      continue;
    }
    const end = close + name.length + 3;
    const inner = rest.slice(match.index, end);
    const opened = Math.max(inner.split(match[0]).length - 2, 0);
    rest = rest.slice(0, match.index) + match[0].repeat(opened) + rest.slice(end);
    work += rest.length;
    if (work > BUDGET) throw new RangeError('too many nested blocks to remove');
    tag.lastIndex = match.index;
  }
}
