import { py } from '../../text/pattern.ts';
import { linesOf } from '../../text/pythontext.ts';
import { type Reader, statuses } from '../reader.ts';
import { addCounted, countIn } from './madeup.ts';

const NAME = '[\\p{L}\\p{N}_\\-/.]+';
/** Matches `3/9 Test #3: name ....   Passed`, but no status after stars (`***Failed`). */
const LINE = new RegExp(py`(?<!\d)\d+\/\d+\s+Test\s+#\d+:\s+(${NAME})\s+\.+\s+(Passed|Failed)`, 'giu');
const HEADING = 'The following tests FAILED:\n';
const LISTED = new RegExp(py`\s+\d+\s+-\s+${NAME}[^\n]*\n?`, 'uy');
const LISTED_NAME = py`(?<!\d)\d+\s+-\s+(${NAME})`;
const SUMMARY = new RegExp(
  py`(?<!\d)\d+%\s+tests\s+passed,\s+(\d+)\s+tests\s+failed\s+out\s+of\s+(\d+)`,
  'iu',
);

export const ctest: Reader = (log) => {
  const found = statuses();
  for (const match of log.matchAll(LINE)) {
    found.set(match[1] ?? '', match[2]?.toLowerCase() === 'passed' ? 'PASSED' : 'FAILED');
  }
  for (const line of linesOf(failedList(log))) {
    const name = LISTED_NAME.exec(line)?.[1];
    if (name !== undefined) found.set(name, 'FAILED');
  }
  if (found.size > 0) return found;
  const summary = SUMMARY.exec(log);
  const failed = countIn(summary, 1);
  addCounted(found, 'synthetic_pass_', 'PASSED', countIn(summary, 2) - failed, 0);
  addCounted(found, 'synthetic_fail_', 'FAILED', failed, 0);
  return found;
};

/** Returns the lines of the first list of failed tests that is not empty. */
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
