/** Reads tasty, HUnit and hspec as SWE-rebench V2 does. */
import { withoutEscapes } from '../text/escapes.ts';
import { indentOf, isSpace, linesOf, S, strip, stripEnd } from '../text/pythontext.ts';
import { dropTime } from './endings.ts';
import { byStrippedLine, type Reader, statuses } from './reader.ts';
import { SuiteStack } from './suites.ts';

const TASTY: Record<string, string> = {
  OK: 'PASSED',
  PASS: 'PASSED',
  FAIL: 'FAILED',
  ERROR: 'ERROR',
  SKIP: 'SKIPPED',
  PENDING: 'SKIPPED',
};
const TASTY_END = new RegExp(`:${S}+(OK|PASS|FAIL|ERROR|SKIP|PENDING)\\b`);
const HUNIT = new RegExp(`^### (Failure|Error) in:${S}*([^]+)$`);
const NUMBERED = new RegExp(`^\\p{Nd}+\\)${S}+([^]+)$`, 'u');

export const haskell = byStrippedLine((line, found) => {
  const hit = readLine(line);
  if (hit && hit.name !== '') found.set(hit.name, hit.status);
}, withoutEscapes);

function readLine(line: string): { name: string; status: string } | null {
  const hunit = HUNIT.exec(line);
  if (hunit) return { name: hunit[2] ?? '', status: hunit[1] === 'Error' ? 'ERROR' : 'FAILED' };
  const tasty = line.startsWith('Test suite') ? null : TASTY_END.exec(line);
  if (tasty) return { name: strip(line.slice(0, tasty.index)), status: TASTY[tasty[1] ?? ''] ?? '' };
  for (const [mark, status] of [
    ['✓', 'PASSED'],
    ['✔', 'PASSED'],
    ['✗', 'FAILED'],
    ['✘', 'FAILED'],
  ] as const) {
    if (line.endsWith(`[${mark}]`)) return { name: strip(line.slice(0, -3)), status };
    if ((mark === '✓' || mark === '✗') && line.startsWith(mark) && isSpace(line[1]))
      return { name: strip(dropTime(line.slice(1))), status };
  }
  const name = NUMBERED.exec(line)?.[1];
  return name === undefined ? null : { name, status: 'FAILED' };
}

const FAILED = new RegExp(`${S}+FAILED${S}+\\[\\p{Nd}+\\]$`, 'u');
const PENDING = new RegExp(`${S}(?:PENDING|SKIPPED)\\b`, 'i');

/** Reads hspec's tree below `RUNNING...`. A line without deeper lines below is a test, named by the path of titles to that line. */
export const hspec: Reader = (log) => {
  const found = statuses();
  const path = new SuiteStack();
  let previous: { line: string; status: string } | null = null;
  let started = false;
  let failures = false;
  const store = (nextIndent: number): void => {
    if (!previous) return;
    if (nextIndent <= indentOf(previous.line)) found.set(path.names().join('.'), previous.status);
    previous = null;
  };
  for (const raw of linesOf(log)) {
    const line = stripEnd(raw);
    const text = strip(line);
    if (!started) {
      started = text.endsWith('RUNNING...');
      continue;
    }
    if (text === '') continue;
    if (text === 'Failures:') {
      store(0);
      failures = true;
    }
    if (failures) {
      const name = NUMBERED.exec(text)?.[1];
      if (name !== undefined) found.set(name, 'FAILED');
      continue;
    }
    store(indentOf(line));
    const { name, status } = statusAtEnd(line);
    path.open(name);
    previous = { line, status };
  }
  store(0);
  return found;
};

function statusAtEnd(line: string): { name: string; status: string } {
  const failed = tail(line, FAILED);
  if (failed !== null) return { name: failed, status: 'FAILED' };
  const pending = PENDING.exec(line);
  if (pending) return { name: stripEnd(line.slice(0, pending.index)), status: 'SKIPPED' };
  return { name: line, status: 'PASSED' };
}

/** Returns the text before the match of `pattern`. Searches only the last 64 characters, because hspec's endings are shorter. */
function tail(line: string, pattern: RegExp): string | null {
  const from = Math.max(line.length - 64, 0);
  const match = pattern.exec(line.slice(from));
  return match ? stripEnd(line.slice(0, from + match.index)) : null;
}
