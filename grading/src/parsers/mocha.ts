/** Reads the runners of highlight.js, Prism, Next, Lighthouse and quarto-cli as swebench 5.0.2 does. */

import { withoutEscapes } from '../text/escapes.ts';
import { pairs, py } from '../text/pattern.ts';
import { before, indentOf, isSpace, linesOf, strip, stripStart } from '../text/pythontext.ts';
import { reactPdf } from './failures.ts';
import { type Reader, reading, statuses } from './reader.ts';
import { SuiteStack } from './suites.ts';

/** Matches the start of mocha's summary. */
const SUMMARY = py`(?<!\d)\d+\spassing`;
const SUMMARY_LINE = py`\n[ \t]*\d+ passing`;
const NUMBERED = py`^\d+\)`;
const withoutTimes = (name: string): string => strip(name.replace(/\(\p{Nd}+ms\)/gu, ''));

/** Returns the text before the first match, or the whole text. */
function beforeMatch(text: string, pattern: RegExp): string {
  const match = pattern.exec(text);
  return match ? text.slice(0, match.index) : text;
}

/** The suite of a test is the last title above the test, at any depth. */
export const highlightJs = reading((log, found) => {
  let suite: string[] = [];
  for (const line of linesOf(beforeMatch(log, SUMMARY_LINE))) {
    const test = strip(line);
    const passed = test.startsWith('✓') || test.startsWith('✔');
    if (passed || NUMBERED.test(test)) {
      const mark = passed ? (test[0] ?? '') : ')';
      const name = withoutTimes(line.slice(line.indexOf(mark) + 1));
      found.set([...suite, name].join('.'), passed ? 'PASSED' : 'FAILED');
    } else if (line.startsWith('  ')) suite = [test];
  }
});

const PRISM = './node_modules/.bin/mocha tests/run.js --reporter json';

/** Reads the JSON that mocha prints after each command. @throws SyntaxError, RangeError if the JSON is invalid */
export const prismJs = reading((log, found) => {
  for (const part of log.split(PRISM).slice(1)) {
    const open = part.indexOf('{');
    const inside = open < 0 ? part : part.slice(open + 1);
    const close = inside.lastIndexOf('}');
    const result: unknown = JSON.parse(`{${close < 0 ? inside : inside.slice(0, close)}}`);
    for (const title of titles(result, 'failures')) found.set(title, 'FAILED');
    for (const title of titles(result, 'passes')) found.set(title, 'PASSED');
  }
});

function titles(result: unknown, list: 'failures' | 'passes'): string[] {
  const entries = (result as Record<string, unknown>)[list];
  if (!Array.isArray(entries)) throw new RangeError(`no list "${list}"`);
  return entries.map((entry: unknown) => {
    const title = (entry as { fullTitle?: unknown } | null)?.fullTitle;
    if (typeof title !== 'string') throw new RangeError('a test without a title');
    return title;
  });
}

/** Version 1.27 of Next runs cypress. Other versions run karma under xvfb. */
export const next: Reader = (log, context) =>
  context.instance.version === '1.27' ? nextCypress(log) : nextKarma(log);

const NOISE = ['ERROR', 'LOG', 'WARN', 'Check', 'in'];

function nextKarma(log: string): Map<string, string> {
  const found = statuses();
  const suites = new SuiteStack();
  for (const run of withoutAssertions(withoutEscapes(log)).split(' xvfb-run ').slice(1)) {
    const browser = run.lastIndexOf('Starting browser Chrome');
    const text = browser < 0 ? run : run.slice(browser + 'Starting browser Chrome'.length);
    for (const line of linesOf(text)) {
      if (line.startsWith('TOTAL')) break;
      const stripped = strip(line);
      if (NOISE.some((word) => stripped.startsWith(word))) continue;
      const mark = line.includes('✗') ? '✗' : line.includes('✓') ? '✓' : null;
      if (mark !== null) {
        const name = stripStart(line.slice(line.indexOf(mark) + 1));
        found.set([...suites.names(), name].join(' - '), mark === '✓' ? 'PASSED' : 'FAILED');
      } else if (indentOf(line) > 0) suites.open(line);
    }
  }
  return found;
}

const ASSERTION = new RegExp(py`AssertionError:\s+#`, 'gu');

/** Removes each text from `AssertionError: #` to the next empty line. */
function withoutAssertions(log: string): string {
  const parts: string[] = [];
  let from = 0;
  for (const [open, close] of pairs(log, ASSERTION, /\n\n/g)) {
    parts.push(log.slice(from, open.index));
    from = close.index + close[0].length;
  }
  return parts.join('') + log.slice(from);
}

/** Pattern of the start of a line. */
const LINE = '(?<![^\\n])';
const CYPRESS_FAILED = new RegExp(py`${LINE}\s{4}\d+\)\s([^\n]*)`, 'gu');
const CYPRESS_PASSED = new RegExp(py`${LINE}\s{4}✓\s([^\n]*)\(`, 'gu');

function nextCypress(log: string): Map<string, string> {
  const found = statuses();
  const suites = [...cypressSuites(log)];
  for (const [at, suite] of suites.entries()) {
    const text = log.slice(suite.end, suites[at + 1]?.start ?? log.length);
    for (const hit of text.matchAll(CYPRESS_FAILED))
      found.set(`${suite.title}: ${strip(hit[1] ?? '')}`, 'FAILED');
    for (const hit of text.matchAll(CYPRESS_PASSED))
      found.set(`${suite.title}: ${strip(hit[1] ?? '')}`, 'PASSED');
  }
  return found;
}

/** Yields the suites of cypress: `Running: file (1 of 2)`, two empty lines, then two blanks and the title. */
function* cypressSuites(log: string): Generator<{ title: string; start: number; end: number }> {
  let start = 0;
  let from = 0;
  for (const line of linesOf(log)) {
    const open = line.indexOf('Running:', Math.max(from - start, 0));
    const at = start + line.length;
    const title = at + 5;
    const blanks = log.startsWith('\n\n\n', at) && isSpace(log[at + 3]) && isSpace(log[at + 4]);
    const end = open >= 0 && line.endsWith(')') && blanks ? log.indexOf('\n', title) : -1;
    if (end >= 0) {
      yield { title: log.slice(title, end), start: start + open, end: end + 1 };
      from = end + 1;
    }
    start = at + 1;
  }
}

const CASES: [mark: RegExp, status: string][] = [
  [py`^✔\s`, 'PASSED'],
  [py`^\d+\)\s`, 'FAILED'],
];
/** Matches a name with a time: the last ` (12ms)` and all text after it are no part of the name. */
const LAST_TIME = py`^(.*)\s\(\d{1,40}m{1,40}s\).*$`;
const LIGHTHOUSE = './node_modules/.bin/mocha --reporter json';

/** Versions 9.5, 10.0 and 10.2 print mocha's text, other versions from 3 on print jest's files, and older versions print mocha's JSON. */
export const lighthouse: Reader = (log, context) => {
  const { version } = context.instance;
  if (['9.5', '10.0', '10.2'].includes(version)) return lighthouseMocha(log);
  if (!/^\s*[+-]?\d+(?:\.\d*)?\s*$/.test(version)) throw new RangeError(`version "${version}" is no number`);
  if (Number(version) >= 3) return reactPdf(log, context);
  const found = statuses();
  for (const part of log.split(LIGHTHOUSE).slice(1)) {
    for (const title of fullTitles(section(part, '"passes": [', ']'))) found.set(title, 'PASSED');
    for (const title of fullTitles(section(part, '"failures": [', '],'))) found.set(title, 'FAILED');
  }
  return found;
};

/** Returns the text from the last `open` (or the start) to the last `close` after it (or the end). */
function section(text: string, open: string, close: string): string {
  const from = text.lastIndexOf(open);
  const rest = from < 0 ? text : text.slice(from + open.length);
  const to = rest.lastIndexOf(close);
  return to < 0 ? rest : rest.slice(0, to);
}

// The harness's pattern includes the newline, so the last line does not count.
const FULL_TITLE = new RegExp(py`(?<![^\n])(?=.*",\n).*?"fullTitle":\s"(.*)",\n`, 'gu');
const fullTitles = (text: string): string[] => [...text.matchAll(FULL_TITLE)].map(([, title = '']) => title);

function lighthouseMocha(log: string): Map<string, string> {
  const found = statuses();
  const runs = log.split(py`running\s\d+\stest\sfiles`);
  for (const run of runs.slice(1)) {
    const suites = new SuiteStack();
    for (const line of linesOf(strip(beforeMatch(run, SUMMARY)))) {
      const test = strip(line);
      const hit = CASES.find(([mark]) => mark.test(test));
      if (hit) {
        const name = test.replace(hit[0], '').replace(LAST_TIME, '$1');
        found.set([...suites.names(), name].join(' - '), hit[1]);
      } else if (indentOf(line) > 0) suites.open(line);
    }
  }
  return found;
}

const QUARTO_TEMPORARY = [/\/tmp\/[\p{L}\p{N}_]+\.qmd/gu, /\/tmp\/[\p{L}\p{N}_]+\//gu];

/** Reads `[smoke] > name ... ok` in colours. Replaces temporary paths by numbers in order of appearance. */
export const quartoCli = reading((log, found) => {
  const numbers = new Map<string, number>();
  for (const raw of linesOf(log)) {
    if (raw.includes('ERRORS') || raw.includes('failures:')) break;
    if (!raw.includes('[smoke]') && !raw.includes('[unit]')) continue;
    const line = numberPaths(raw, numbers);
    const result = line.startsWith('test result:') || line.includes('34mINFO');
    if (result || ['passed', 'failed', 'steps'].every((word) => line.includes(word))) continue;
    const name = strip(before(line, '...'));
    if (line.includes('32mok')) found.set(name, 'PASSED');
    else if (line.includes('31mFAILED') || !found.has(name)) found.set(name, 'FAILED');
  }
});

function numberPaths(raw: string, numbers: Map<string, number>): string {
  let line = raw;
  for (const pattern of QUARTO_TEMPORARY) {
    const path = line.match(pattern)?.[0];
    if (path === undefined) continue;
    if (!numbers.has(path)) numbers.set(path, numbers.size);
    line = line.replaceAll(pattern, `/tmp/${numbers.get(path)}`);
  }
  return line;
}
