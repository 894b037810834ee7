/** sympy's `bin/test -C --verbose`: one line per test, and a title between underscores over each failure. */
import { fields, linesOf, strip, stripEnd } from '../text/pythontext.ts';
import { type Reader, statuses } from './reader.ts';

const ENDINGS = [
  [' E', 'ERROR'],
  [' F', 'FAILED'],
  [' ok', 'PASSED'],
] as const;

export const sympy: Reader = (log, { dialect }) => {
  const found = statuses();
  for (const line of linesOf(log)) {
    const title = failureTitle(line);
    if (title !== null) found.set(title, 'FAILED');
  }
  for (const raw of linesOf(log)) {
    let line = strip(raw);
    if (!line.startsWith('test_')) continue;
    // The verdict of a file follows its last test; only the fork reads the status before it.
    if (dialect === 'swegym' && (line.endsWith('[FAIL]') || line.endsWith('[OK]'))) {
      line = stripEnd(line.slice(0, line.lastIndexOf('[')));
    }
    const ending = ENDINGS.find(([suffix]) => line.endsWith(suffix));
    const name = fields(line, 1)[0];
    if (ending && name !== undefined) found.set(name, ending[1]);
  }
  return found;
};

/**
 * `____ path/to/file.py:test_name ____` anywhere in a line gives `path/to/file.py:test_name`: from the first blank to the last,
 * divided at the last `.py:` that is followed by a blank somewhere.
 */
function failureTitle(line: string): string | null {
  const open = line.indexOf(' ');
  const close = line.lastIndexOf(' ');
  if (open < 0 || close - 4 < 0) return null;
  const divide = line.lastIndexOf('.py:', close - 4);
  return divide > open ? line.slice(open + 1, close) : null;
}
