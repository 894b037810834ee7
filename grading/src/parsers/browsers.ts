/** Reads the failures of browser tests as swebench 5.0.2 does (bpmn-js, OpenLayers, ESLint), and the test files of grommet. */
import { ending, pairs, py, withoutEnd } from '../text/pattern.ts';
import { fields, isSpace, linesOf, strip } from '../text/pythontext.ts';
import { type Readers, reading } from './reader.ts';

const BPMN = [
  py`2KPhantomJS\s[\d.]+\s\(Linux\s[\d.]+\)\s(.*)`,
  py`2KPhantomJS\s[\d.]+\s\(Linux\sx86_64\)\s(.*)`,
  py`HeadlessChrome\s[\d.]+\s\(Linux\s[\d.]+\)\s(.*)`,
  // The group of the lookahead prevents a second search, which would take quadratic time.
  py`^(?=(?<start>.*?Chrome\sHeadless\s))\k<start>.*\s\(Linux\sx86_64\)\s(.*)`,
];

/** Reads lines that end in FAILED. The name is the text between the browser and FAILED, including the blank before FAILED. */
const bpmnJs = reading((log, found) => {
  for (const line of failedLines(log)) {
    for (const browser of BPMN) {
      const name = browser.exec(line)?.at(-1);
      if (name !== undefined) found.set(name, 'FAILED');
    }
  }
});

/** Yields the lines that end in FAILED and a newline, without the word FAILED. */
function* failedLines(log: string): Generator<string> {
  let previous: string | null = null;
  for (const line of linesOf(log)) {
    if (previous?.endsWith('FAILED')) yield previous.slice(0, -'FAILED'.length);
    previous = line;
  }
}

const oneLine = (text: string): string => fields(text).join(' ');
const OL_HEADLESS = py`Chrome\sHeadless\s[\d.]+\s\(Linux\s\S+\)\s(.+)`;
const OL_CHROME = py`Chrome\s[\d.]+\s\(Linux\s\S+\)\s(.*)`;
const OL_NUMBER = new RegExp(py`(?<![^\n])\s{2}\d+\)`, 'gu');
const OL_ERROR = /Error:/g;
const OL_MISMATCH = py`^case\s(.*):\smismatch`;

const openlayers = reading((log, found) => {
  const add = (name: string | undefined): void => {
    if (name !== undefined) found.set(oneLine(name), 'FAILED');
  };
  for (const line of failedLines(log)) {
    if (isSpace(line.at(-1))) add(OL_HEADLESS.exec(line)?.[1]);
    add(OL_CHROME.exec(line)?.[1]);
  }
  for (const [number, error] of pairs(log, OL_NUMBER, OL_ERROR))
    add(log.slice(number.index + number[0].length, error.index));
  for (const line of linesOf(log)) add(OL_MISMATCH.exec(line)?.[1]);
});

const ESLINT_HEAD = new RegExp(py`\s{2}\d+\)`, 'gu');

/** The name of a test begins after `  N)` and ends where {@link untilError} finds an error. */
const eslint = reading((log, found) => {
  const pattern = new RegExp(ESLINT_HEAD);
  for (let match = pattern.exec(log); match; match = pattern.exec(log)) {
    const hit = untilError(log, pattern.lastIndex);
    if (!hit) break;
    found.set(oneLine(log.slice(pattern.lastIndex, hit.end)), 'FAILED');
    pattern.lastIndex = hit.next;
  }
});

const BLANK = py`\s`;

function untilError(log: string, from: number): { end: number; next: number } | null {
  let start = from;
  while (start <= log.length) {
    const newline = log.indexOf('\n', start);
    const lineEnd = newline < 0 ? log.length : newline;
    const error = log.slice(start, lineEnd).lastIndexOf('Error');
    if (error >= 0) {
      // The name ends before a later line that contains `Error`. On the first line, the name ends at the first blank before `Error`.
      const blank = start > from ? -1 : log.slice(start, start + error).search(BLANK);
      if (start > from || blank >= 0) return { end: start + blank, next: start + error + 'Error'.length };
    }
    start = lineEnd + 1;
  }
  return null;
}

const GROMMET_TIME = ending`\s\([\d.]+\s?m?s\)`;

/** Reads `PASS file (3 s)`. A file with both PASS and FAIL counts as passed. */
const grommet = reading((log, found) => {
  for (const [word, status] of [
    ['FAIL', 'FAILED'],
    ['PASS', 'PASSED'],
  ] as const) {
    const pattern = new RegExp(py`(?<![^\n])${word}\s([^\n]*)`, 'gu');
    for (const match of log.matchAll(pattern))
      found.set(withoutEnd(strip(match[1] ?? ''), GROMMET_TIME), status);
  }
});

export const BROWSERS: Readers = { bpmn_js: bpmnJs, eslint, grommet, openlayers };
