/** Reads the failures of browser tests as swebench 5.0.2 does (bpmn-js, OpenLayers, ESLint), and the test files of grommet. */
import { fields, isSpace, linesOf, S, strip } from '../text/pythontext.ts';
import { type Reader, statuses } from './reader.ts';

const BPMN = [
  /2KPhantomJS\s[\p{Nd}.]+\s\(Linux\s[\p{Nd}.]+\)\s/u,
  /2KPhantomJS\s[\p{Nd}.]+\s\(Linux\sx86_64\)\s/u,
  /HeadlessChrome\s[\p{Nd}.]+\s\(Linux\s[\p{Nd}.]+\)\s/u,
];
const HEADLESS = /Chrome\sHeadless\s/;
const SYSTEM = /\(Linux\sx86_64\)\s/g;

/** Reads lines that end in FAILED. The name is the text between the browser and FAILED, including the blank before FAILED. */
export const bpmnJs: Reader = (log) => {
  const found = statuses();
  for (const line of failedLines(log)) {
    for (const browser of BPMN) {
      const match = browser.exec(line);
      if (match) found.set(line.slice(match.index + match[0].length), 'FAILED');
    }
    const headless = HEADLESS.exec(line);
    const system = headless && lastSystem(line, headless.index + headless[0].length);
    if (system) found.set(line.slice(system.index + system[0].length), 'FAILED');
  }
  return found;
};

/** Returns the last match of `(Linux x86_64) ` that begins after `from` and follows a blank. */
const lastSystem = (line: string, from: number): RegExpExecArray | undefined =>
  [...line.matchAll(SYSTEM)].findLast((match) => match.index > from && isSpace(line[match.index - 1]));

/** Yields the lines that end in FAILED and a newline, without the word FAILED. */
function* failedLines(log: string): Generator<string> {
  let previous: string | null = null;
  for (const line of linesOf(log)) {
    if (previous?.endsWith('FAILED')) yield previous.slice(0, -'FAILED'.length);
    previous = line;
  }
}

const oneLine = (text: string): string => fields(text).join(' ');
const OL_HEADLESS = /Chrome\sHeadless\s[\p{Nd}.]+\s\(Linux\s\S+\)\s/u;
const OL_CHROME = /Chrome\s[\p{Nd}.]+\s\(Linux\s\S+\)\s/u;

export const openlayers: Reader = (log) => {
  const found = statuses();
  for (const line of failedLines(log)) {
    const headless = OL_HEADLESS.exec(line);
    if (headless && isSpace(line.at(-1)) && line.length > headless.index + headless[0].length) {
      found.set(oneLine(line.slice(headless.index + headless[0].length)), 'FAILED');
    }
    const chrome = OL_CHROME.exec(line);
    if (chrome) found.set(oneLine(line.slice(chrome.index + chrome[0].length)), 'FAILED');
  }
  for (const name of numberedErrors(log)) found.set(oneLine(name), 'FAILED');
  for (const line of linesOf(log)) {
    const end = line.startsWith('case') && isSpace(line[4]) ? lastMismatch(line) : -1;
    if (end >= 5) found.set(oneLine(line.slice(5, end)), 'FAILED');
  }
  return found;
};

/** Returns the index of the last `: mismatch`, where the blank may be any whitespace character; negative if there is none. */
function lastMismatch(line: string): number {
  let at = line.lastIndexOf('mismatch');
  while (at >= 2 && !(isSpace(line[at - 1]) && line[at - 2] === ':'))
    at = line.lastIndexOf('mismatch', at - 1);
  return at - 2;
}

const NUMBERED_LINE = new RegExp(`(?<![^\\n])${S}{2}\\p{Nd}+\\)`, 'gu');

/** Yields each text between `  N)` at the start of a line and the next `Error:`, which may be on a later line. */
function* numberedErrors(log: string): Generator<string> {
  const pattern = new RegExp(NUMBERED_LINE);
  for (let match = pattern.exec(log); match; match = pattern.exec(log)) {
    const end = log.indexOf('Error:', pattern.lastIndex);
    if (end < 0) return;
    yield log.slice(match.index + match[0].length, end);
    pattern.lastIndex = end + 'Error:'.length;
  }
}

const ESLINT_HEAD = new RegExp(`${S}{2}\\p{Nd}+\\)`, 'gu');

/** The name of a test begins after `  N)` and ends where {@link untilError} finds an error. */
export const eslint: Reader = (log) => {
  const found = statuses();
  const pattern = new RegExp(ESLINT_HEAD);
  for (let match = pattern.exec(log); match; match = pattern.exec(log)) {
    const hit = untilError(log, pattern.lastIndex);
    if (!hit) break;
    found.set(oneLine(log.slice(pattern.lastIndex, hit.end)), 'FAILED');
    pattern.lastIndex = hit.next;
  }
  return found;
};

function untilError(log: string, from: number): { end: number; next: number } | null {
  let start = from;
  while (start <= log.length) {
    const newline = log.indexOf('\n', start);
    const lineEnd = newline < 0 ? log.length : newline;
    const error = log.slice(start, lineEnd).lastIndexOf('Error');
    if (error >= 0) {
      // The name ends before a later line that contains `Error`. On the first line, the name ends at the first blank before `Error`.
      const blank = start > from ? start - 1 : firstBlank(log, start, start + error);
      if (blank >= 0) return { end: blank, next: start + error + 'Error'.length };
    }
    start = lineEnd + 1;
  }
  return null;
}

function firstBlank(text: string, from: number, to: number): number {
  for (let at = from; at < to; at++) if (isSpace(text[at])) return at;
  return -1;
}

const GROMMET_TIME = new RegExp(`^\\([\\p{Nd}.]+${S}?m?s\\)$`, 'u');

/** Reads `PASS file (3 s)`. A file with both PASS and FAIL counts as passed. */
export const grommet: Reader = (log) => {
  const found = statuses();
  for (const [word, status] of [
    ['FAIL', 'FAILED'],
    ['PASS', 'PASSED'],
  ] as const) {
    const pattern = new RegExp(`(?<![^\\n])${word}${S}([^\\n]*)`, 'g');
    for (const match of log.matchAll(pattern)) found.set(withoutTime(strip(match[1] ?? '')), status);
  }
  return found;
};

function withoutTime(name: string): string {
  const open = name.lastIndexOf('(');
  const timed = open > 0 && isSpace(name[open - 1]) && GROMMET_TIME.test(name.slice(open));
  return timed ? name.slice(0, open - 1) : name;
}
