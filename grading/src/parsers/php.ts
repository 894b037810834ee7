/** phpunit --testdox: a line for the suite, then one marked line per test. */
import { linesOf, stripStart } from '../text/pythontext.ts';
import { beforeParen } from './endings.ts';
import { type Reader, statuses } from './reader.ts';

const MARKS: Record<string, string> = { '✔': 'PASSED', '✘': 'FAILED', '↩': 'SKIPPED' };

export const phpunit: Reader = (log) => {
  const found = statuses();
  let suite = 'None';
  for (const line of linesOf(log)) {
    const title = beforeParen(line);
    if (title !== null && title.length > 1 && /^[\p{L}\p{N}_]/u.test(title)) {
      suite = title;
      continue;
    }
    const test = stripStart(line);
    const status = MARKS[test[0] ?? ''];
    if (status !== undefined) found.set(`${suite} > ${stripStart(test.slice(1))}`, status);
  }
  return found;
};
