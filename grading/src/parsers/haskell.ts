/** Reads tasty, HUnit and hspec as SWE-rebench V2 does. */
import { withoutEscapes } from '../text/escapes.ts';
import { ending, py, withoutEnd } from '../text/pattern.ts';
import { indentOf, linesOf, strip, stripEnd } from '../text/pythontext.ts';
import { dropTime } from './endings.ts';
import { byStrippedLine, reading, STATUS } from './reader.ts';
import { SuiteStack } from './suites.ts';

const TASTY = py`^(?!Test suite)(.*?):\s+(OK|PASS|FAIL|ERROR|SKIP|PENDING)\b`;
const HUNIT = py`^### (Failure|Error) in:\s*(.+)$`;
const NUMBERED = py`^\d+\)\s+(.+)$`;
const MARK_AT_END = py`^(.*)\[([✓✔✗✘])\]$`;
const MARKS = '✓✔✗✘';
const MARK = py`^([✓✗])\s(.+)$`;

export const haskell = byStrippedLine((line, found) => {
  const [name, word] = readLine(line);
  if (name !== '') found.set(name, STATUS[word] ?? '');
}, withoutEscapes);

function readLine(line: string): [name: string, word: string] {
  const [, failure, failed = ''] = HUNIT.exec(line) ?? [];
  if (failure !== undefined) return [failed, failure];
  const [, tasty = '', word] = TASTY.exec(line) ?? [];
  if (word !== undefined) return [strip(tasty), word];
  const [, before = '', end] = MARK_AT_END.exec(line) ?? [];
  const [, start, after = ''] = MARK.exec(line) ?? [];
  // A mark at the start counts if it precedes the mark at the end in the list of marks.
  if (end !== undefined && !(start !== undefined && MARKS.indexOf(start) < MARKS.indexOf(end)))
    return [strip(before), end];
  if (start !== undefined) return [strip(dropTime(after)), start];
  return [NUMBERED.exec(line)?.[1] ?? '', 'FAILED'];
}

const FAILED_AT_END = ending`\s+FAILED\s+\[\d+\]`;
const PENDING = new RegExp(py`\s(?:PENDING|SKIPPED)\b`, 'iu');

/** Reads hspec's tree below `RUNNING...`. A line without deeper lines below is a test, named by the path of titles to that line. */
export const hspec = reading((log, found) => {
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
});

function statusAtEnd(line: string): { name: string; status: string } {
  const name = withoutEnd(line, FAILED_AT_END);
  if (name !== line) return { name, status: 'FAILED' };
  const pending = PENDING.exec(line);
  if (pending) return { name: stripEnd(line.slice(0, pending.index)), status: 'SKIPPED' };
  return { name: line, status: 'PASSED' };
}
