/** `go test -v`: `--- PASS: TestName (0.00s)`. */
import { linesOf, strip } from '../text/pythontext.ts';
import { beforeParen } from './endings.ts';
import { type Reader, statuses } from './reader.ts';

const WORDS: Record<string, string> = { PASS: 'PASSED', FAIL: 'FAILED', SKIP: 'SKIPPED' };

export const gotest: Reader = (log) => {
  const found = statuses();
  for (const raw of linesOf(log)) {
    const line = strip(raw);
    const status = WORDS[line.slice(4, 8)];
    if (status === undefined || !line.startsWith('--- ') || !line.startsWith(': ', 8)) continue;
    const name = beforeParen(line.slice(10));
    if (name !== null) found.set(name, status);
  }
  return found;
};
