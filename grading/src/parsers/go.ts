/** Reads `go test -v`: `--- PASS: TestName (0.00s)`. */

import { beforeParen } from './endings.ts';
import { byStrippedLine } from './reader.ts';

const WORDS: Record<string, string> = { PASS: 'PASSED', FAIL: 'FAILED', SKIP: 'SKIPPED' };

export const gotest = byStrippedLine((line, found) => {
  const status = WORDS[line.slice(4, 8)];
  if (status === undefined || !line.startsWith('--- ') || !line.startsWith(': ', 8)) return;
  const name = beforeParen(line.slice(10));
  if (name !== null) found.set(name, status);
});
