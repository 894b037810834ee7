/** `go test -v`: tests, subtests, and packages that failed. */
import { linesOf, SPACE, strip } from '../../text/pythontext.ts';
import { type Reader, statuses } from '../reader.ts';

const PATTERNS: [RegExp, string][] = [
  [new RegExp(`^--- PASS: ([^${SPACE}]+)`), 'PASSED'],
  [new RegExp(`^--- FAIL: ([^${SPACE}]+)`), 'FAILED'],
  // Also the line of a package: `FAIL	example.org/pkg	0.01s`.
  [new RegExp(`^FAIL:?[${SPACE}]?([^]+?)[${SPACE}]`), 'FAILED'],
  [new RegExp(`^--- SKIP: ([^${SPACE}]+)`), 'SKIPPED'],
];

export const goTest: Reader = (log) => {
  const found = statuses();
  for (const raw of linesOf(log)) {
    const line = strip(raw);
    for (const [pattern, status] of PATTERNS) {
      const name = pattern.exec(line)?.[1];
      if (name === undefined) continue;
      found.set(name, status);
      break;
    }
  }
  return found;
};
