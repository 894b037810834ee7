import { py } from '../../text/pattern.ts';
import { isSpace, linesOf, strip } from '../../text/pythontext.ts';
import { type Reader, statuses } from '../reader.ts';
import { addCounted, countIn } from './madeup.ts';

const ERROR = new RegExp(py`error(?:\s+in)?\s+"([^"]+)"`, 'giu');
const ENTERING = /Entering test (?:case|suite) "([^"]+)"/g;
const CASES = py`(?<!\d)(\d+)\s+test cases?\s+(?:out of \d+ )?passed`;
const FAILURES = py`\*\*\* (\d+) failures? detected`;

export const boostTest: Reader = (log) => {
  const found = statuses();
  for (const match of log.matchAll(ERROR)) found.set(match[1] ?? '', 'FAILED');
  for (const match of log.matchAll(ENTERING)) {
    if (found.get(match[1] ?? '') !== 'FAILED') found.set(match[1] ?? '', 'PASSED');
  }
  if (found.size > 0) return found;
  if (log.includes('*** No errors detected')) {
    const cases = CASES.exec(log);
    if (cases) addCounted(found, 'test_passed_', 'PASSED', countIn(cases, 1));
    else found.set('boost_test_suite', 'PASSED');
  }
  addCounted(found, 'test_failed_', 'FAILED', countIn(FAILURES.exec(log), 1));
  return found;
};

const LIT = py`^\s*FAIL:\s+\S+\s+::\s+`;
const NUMBER = new RegExp(py`\(\d+\s+of\s+\d+\)`, 'gu');
const total = (words: string): RegExp => py`${words}\s*:\s*(\d+)`;
const PASSES = [total('Expected Passes'), total('Passed')];
const FAILS = [total('Unexpected Failures'), total('Failed')];

/** Reads `FAIL: suite :: name (3 of 9)`. lit prints only the number of the passed tests. */
export const lit: Reader = (log) => {
  const found = statuses();
  for (const line of linesOf(log)) {
    const head = LIT.exec(line);
    const rest = head ? line.slice(head[0].length) : '';
    const tail = [...rest.matchAll(NUMBER)].find(({ index }) => index > 1 && isSpace(rest[index - 1]));
    if (tail) found.set(strip(rest.slice(0, tail.index)), 'FAILED');
  }
  const named = found.size;
  const first = (patterns: readonly RegExp[]): number => {
    const hit = patterns.map((pattern) => pattern.exec(log)).find((match) => match !== null);
    return countIn(hit ?? null, 1);
  };
  addCounted(found, 'lit_pass_', 'PASSED', first(PASSES));
  addCounted(found, 'lit_fail_', 'FAILED', first(FAILS) - named);
  return found;
};
