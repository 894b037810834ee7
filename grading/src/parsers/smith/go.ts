/** Reads `go test -v`: tests, subtests, and packages that failed. */
import { S, SPACE } from '../../text/pythontext.ts';
import { byStrippedLine } from '../reader.ts';

const PATTERNS: [RegExp, string][] = [
  [new RegExp(`^--- PASS: ([^${SPACE}]+)`), 'PASSED'],
  [new RegExp(`^--- FAIL: ([^${SPACE}]+)`), 'FAILED'],
  // Matches the line of a package too: `FAIL	example.org/pkg	0.01s`.
  [new RegExp(`^FAIL:?${S}?([^]+?)${S}`), 'FAILED'],
  [new RegExp(`^--- SKIP: ([^${SPACE}]+)`), 'SKIPPED'],
];

export const goTest = byStrippedLine((line, found) => {
  for (const [pattern, status] of PATTERNS) {
    const name = pattern.exec(line)?.[1];
    if (name === undefined) continue;
    found.set(name, status);
    return;
  }
});
