import { linesOf, S } from '../../text/pythontext.ts';
import { type Reader, statuses } from '../reader.ts';
import { addCounted, countIn } from './madeup.ts';

const NAME = '[\\p{L}\\p{N}_\\-/.]+';
/** Matches `3/9 Test #3: name ....   Passed`, but no status after stars (`***Failed`). */
const LINE = new RegExp(
  `(?<!\\p{Nd})\\p{Nd}+\\/\\p{Nd}+${S}+Test${S}+#\\p{Nd}+:${S}+(${NAME})${S}+\\.+${S}+(Passed|Failed)`,
  'giu',
);
const HEADING = 'The following tests FAILED:\n';
const LISTED = new RegExp(`${S}+\\p{Nd}+${S}+-${S}+${NAME}[^\\n]*\\n?`, 'uy');
const LISTED_NAME = new RegExp(`(?<!\\p{Nd})\\p{Nd}+${S}+-${S}+(${NAME})`, 'u');
const SUMMARY = new RegExp(
  `(?<!\\p{Nd})\\p{Nd}+%${S}+tests${S}+passed,${S}+(\\p{Nd}+)${S}+tests${S}+failed${S}+out${S}+of${S}+(\\p{Nd}+)`,
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
