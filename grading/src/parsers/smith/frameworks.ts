/** Reads test frameworks of C and C++: Boost.Test, lit, ctest, googletest. Some logs contain only the number of tests. */
import { py } from '../../text/pattern.ts';
import { isSpace, linesOf, shortLines, strip, strippedLines } from '../../text/pythontext.ts';
import { type Readers, reading } from '../reader.ts';
import { addCounted, countIn } from './madeup.ts';

const ERROR = new RegExp(py`error(?:\s+in)?\s+"([^"]+)"`, 'giu');
const ENTERING = /Entering test (?:case|suite) "([^"]+)"/g;
const CASES = py`(?<!\d)(\d+)\s+test cases?\s+(?:out of \d+ )?passed`;
const FAILURES = py`\*\*\* (\d+) failures? detected`;

const boostTest = reading((log, found) => {
  for (const match of log.matchAll(ERROR)) found.set(match[1] ?? '', 'FAILED');
  for (const match of log.matchAll(ENTERING)) {
    if (found.get(match[1] ?? '') !== 'FAILED') found.set(match[1] ?? '', 'PASSED');
  }
  if (found.size > 0) return;
  if (log.includes('*** No errors detected')) {
    const cases = CASES.exec(log);
    if (cases) addCounted(found, 'test_passed_', 'PASSED', countIn(cases, 1));
    else found.set('boost_test_suite', 'PASSED');
  }
  addCounted(found, 'test_failed_', 'FAILED', countIn(FAILURES.exec(log), 1));
});

const LIT = py`^\s*FAIL:\s+\S+\s+::\s+`;
const NUMBER = new RegExp(py`\(\d+\s+of\s+\d+\)`, 'gu');
const total = (words: string): RegExp => py`${words}\s*:\s*(\d+)`;
const PASSES = [total('Expected Passes'), total('Passed')];
const FAILS = [total('Unexpected Failures'), total('Failed')];

/** Reads `FAIL: suite :: name (3 of 9)`. lit prints only the number of the passed tests. */
const lit = reading((log, found) => {
  for (const line of shortLines(log)) {
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
});

const CTEST_NAME = '[\\p{L}\\p{N}_\\-/.]+';
/** Matches `3/9 Test #3: name ....   Passed`, but no status after stars (`***Failed`). */
const CTEST_LINE = new RegExp(
  py`(?<!\d)\d+\/\d+\s+Test\s+#\d+:\s+(${CTEST_NAME})\s+\.+\s+(Passed|Failed)`,
  'giu',
);
const HEADING = 'The following tests FAILED:\n';
const LISTED = new RegExp(py`\s+\d+\s+-\s+${CTEST_NAME}[^\n]*\n?`, 'uy');
const LISTED_NAME = py`(?<!\d)\d+\s+-\s+(${CTEST_NAME})`;
const SUMMARY = new RegExp(
  py`(?<!\d)\d+%\s+tests\s+passed,\s+(\d+)\s+tests\s+failed\s+out\s+of\s+(\d+)`,
  'iu',
);

const ctest = reading((log, found) => {
  for (const match of log.matchAll(CTEST_LINE)) {
    found.set(match[1] ?? '', match[2]?.toLowerCase() === 'passed' ? 'PASSED' : 'FAILED');
  }
  for (const line of linesOf(failedList(log))) {
    const name = LISTED_NAME.exec(line)?.[1];
    if (name !== undefined) found.set(name, 'FAILED');
  }
  if (found.size > 0) return;
  const summary = SUMMARY.exec(log);
  const failed = countIn(summary, 1);
  addCounted(found, 'synthetic_pass_', 'PASSED', countIn(summary, 2) - failed, 0);
  addCounted(found, 'synthetic_fail_', 'FAILED', failed, 0);
});

/** Returns the lines of the first list of failed tests that is not empty; '' if there is no such list. */
function failedList(log: string): string {
  for (let at = log.indexOf(HEADING); at >= 0; at = log.indexOf(HEADING, at + 1)) {
    const from = at + HEADING.length;
    let end = from;
    LISTED.lastIndex = from;
    while (LISTED.test(log)) end = LISTED.lastIndex;
    if (end > from) return log.slice(from, end);
  }
  return '';
}

const GTEST_NAME = '([\\p{L}\\p{N}_:/.]+)';
const GTEST_LINES: [RegExp, string][] = [
  [py`^\[\s*(?:OK|PASSED)\s*\]\s+${GTEST_NAME}`, 'PASSED'],
  [py`^\[\s*FAILED\s*\]\s+${GTEST_NAME}(?:\s+\(|$)`, 'FAILED'],
  [py`^\[\s*(?:SKIPPED|DISABLED)\s*\]\s+${GTEST_NAME}`, 'SKIPPED'],
];
const ONLY_DIGITS = py`^\d+$`;
const COUNT = py`(?<!\d)\d+\s+tests?[.,]`;
/** Matches the summary of a run. */
const ENDED = py`\[=+\]\s+\d+\s+tests?\s+from`;
const TOTALS = [
  [py`\[\s*PASSED\s*\]\s+(\d+)\s+tests?`, 'test_passed_', 'PASSED'],
  [py`\[\s*FAILED\s*\]\s+(\d+)\s+tests?`, 'test_failed_', 'FAILED'],
] as const;

const gtest = reading((log, found) => {
  for (const line of strippedLines(log)) {
    for (const [pattern, status] of GTEST_LINES) {
      const name = pattern.exec(line)?.[1];
      if (name === undefined) continue;
      if (!ONLY_DIGITS.test(name) && !COUNT.test(line)) found.set(name, status);
      break;
    }
  }
  if (found.size > 0 || !ENDED.test(log)) return;
  for (const [pattern, prefix, status] of TOTALS)
    addCounted(found, prefix, status, countIn(pattern.exec(log), 1));
});

export const FRAMEWORKS: Readers = { 'boost-test': boostTest, ctest, gtest, lit };
