/** Reads the test runners of C++ projects and Neovim as SWE-rebench V2 does. */
import { withoutEscapes } from '../text/escapes.ts';
import { fields, isSpace, linesOf, S, SPACE, strip, stripEnd } from '../text/pythontext.ts';
import { setUnlessFailed } from './ranks.ts';
import { byStrippedLine, type Reader, statuses } from './reader.ts';

const WORDS = new RegExp(`${S}(PASSED|FAILED|SKIPPED|ERROR)`);
const TITLE = new RegExp(`^_+${S}+([^${SPACE}_].*?[^${SPACE}_]|[^${SPACE}_])${S}+_+$`);

/** Reads pytest's `path::name STATUS` and stores `name`. Below the header FAILURES, a title `___ name ___` marks a known test as failed. */
export const cppPytest: Reader = (log) => {
  const found = statuses();
  let failures = false;
  for (const line of linesOf(log)) {
    if (line.startsWith('=') && line.includes(' FAILURES ')) failures = true;
    if (failures) {
      const title = line.length < 4096 ? TITLE.exec(strip(line))?.[1] : undefined;
      if (title !== undefined && found.has(title)) found.set(title, 'FAILED');
      continue;
    }
    const match = WORDS.exec(line);
    if (match) setUnlessFailed(found, lastPart(line.slice(0, match.index)), match[1] ?? '');
  }
  return found;
};

const lastPart = (name: string): string =>
  strip(name.slice(name.lastIndexOf('::') + (name.includes('::') ? 2 : 1)));

const OUTCOMES: Record<string, string> = { passed: 'PASSED', failed: 'FAILED', skipped: 'SKIPPED' };

/** Reads `Test name passed`, `Test name failed` and `Test name skipped`. */
export const cppTestLines = byStrippedLine((line, found) => {
  if (!line.startsWith('Test') || !isSpace(line[4])) return;
  const word = ['passed', 'failed', 'skipped'].find((candidate) => line.endsWith(candidate));
  if (word === undefined || !isSpace(line[line.length - word.length - 1])) return;
  const name = strip(line.slice(4, -word.length));
  if (name !== '') setUnlessFailed(found, name, OUTCOMES[word] ?? '');
});

const RAN = new RegExp(
  `${S}ran${S}+(\\p{Nd}+)${S}+tests${S}+in${S}+[\\p{Nd}.]+${S}+(?:msec|sec)${S}+([^]+)$`,
  'u',
);
const DOTS = new RegExp(`${S}\\.\\.\\.${S}+([^]+)$`);
const NUMBER = new RegExp(`^\\[\\p{Nd}+/\\p{Nd}+\\]${S}+`, 'u');

/** Reads Botan's `name ran N tests in T msec …` and `[1/2] name ... ok`. Any other line with an outcome word is stored whole as a name. */
export const botan = byStrippedLine((line, found) => {
  if (line === '') return;
  const ran = RAN.exec(line);
  const dots = ran ? null : DOTS.exec(line);
  if (ran) {
    const name = `${stripEnd(line.slice(0, ran.index))} ran ${ran[1]} tests ${ran[2]}`;
    found.set(name, /failed/i.test(ran[2] ?? '') ? 'FAILED' : 'PASSED');
  } else if (dots) {
    const name = stripEnd(line.slice(0, dots.index).replace(NUMBER, ''));
    if (name !== '') found.set(name, outcomeIn(dots[1] ?? '') ?? 'ERROR');
  } else {
    const status = outcomeIn(line);
    if (status !== null) found.set(line, status);
  }
});

function outcomeIn(text: string): string | null {
  if (/\bskipped\b/i.test(text)) return 'SKIPPED';
  if (/\bfail(?:ed|ure)?\b/i.test(text)) return 'FAILED';
  return /\b(?:ok|passed)\b/i.test(text) ? 'PASSED' : null;
}

const CTEST = new RegExp(`^\\p{Nd}+/\\p{Nd}+${S}+Test${S}+#\\p{Nd}+:${S}+`, 'iu');
const CTEST_WORD = new RegExp(`^${S}+(Passed|Failed|Skipped|Timeout)\\b`, 'i');

/** Reads the lines of ctest that have blanks around the dots: `1/6 Test #1: name ....   Passed`. */
export const ctestLines = byStrippedLine((line, found) => {
  const head = CTEST.exec(line);
  if (!head) return;
  const rest = line.slice(head[0].length);
  const dots = dotsIn(rest);
  if (dots) found.set(stripEnd(rest.slice(0, dots.from)), OUTCOMES[dots.word.toLowerCase()] ?? 'FAILED');
});

/** Returns the first run of dots that has a blank before it, and a blank and an outcome after it. */
function dotsIn(text: string): { from: number; word: string } | null {
  for (const match of text.matchAll(/\.+/g)) {
    const from = match.index;
    const word =
      from > 1 && isSpace(text[from - 1])
        ? CTEST_WORD.exec(text.slice(from + match[0].length, from + match[0].length + 4096))?.[1]
        : undefined;
    if (word !== undefined) return { from, word };
  }
  return null;
}

const LUA: Record<string, string> = {
  Success: 'PASSED',
  Fail: 'FAILED',
  Failed: 'FAILED',
  Skip: 'SKIPPED',
  Skipped: 'SKIPPED',
};

/** Reads plenary, the test runner of Neovim plugins: `Success || name`. */
export const plenary = byStrippedLine((line, found) => {
  const bars = line.indexOf('||');
  const words = bars < 0 ? [] : fields(line.slice(0, bars), 2);
  const status = words.length === 1 ? LUA[words[0] ?? ''] : undefined;
  const name = strip(line.slice(bars + 2));
  if (status !== undefined && name !== '') setUnlessFailed(found, name, status);
}, withoutEscapes);
