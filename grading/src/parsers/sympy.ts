/** Reads sympy's `bin/test -C --verbose`: one line per test, and a title between underscores above each failure. */
import { fields, linesOf, strip, stripEnd } from '../text/pythontext.ts';
import { reading } from './reader.ts';

const ENDINGS = [
  [' E', 'ERROR'],
  [' F', 'FAILED'],
  [' ok', 'PASSED'],
] as const;

export const sympy = reading((log, found, { dialect }) => {
  for (const line of linesOf(log)) {
    const title = failureTitle(line);
    if (title !== null) found.set(title, 'FAILED');
  }
  for (const raw of linesOf(log)) {
    let line = strip(raw);
    if (!line.startsWith('test_')) continue;
    // `[OK]` or `[FAIL]` of a file follows the file's last test. Only SWE-Gym's harness reads the status of that test.
    if (dialect === 'swegym' && (line.endsWith('[FAIL]') || line.endsWith('[OK]'))) {
      line = stripEnd(line.slice(0, line.lastIndexOf('[')));
    }
    const ending = ENDINGS.find(([suffix]) => line.endsWith(suffix));
    const name = fields(line, 1)[0];
    if (ending && name !== undefined) found.set(name, ending[1]);
  }
});

/** Returns the text between the first and the last blank, as in `____ path/file.py:test_name ____`; null if it has no `.py:`. */
function failureTitle(line: string): string | null {
  const open = line.indexOf(' ');
  const close = line.lastIndexOf(' ');
  if (open < 0 || close - 4 < 0) return null;
  const divide = line.lastIndexOf('.py:', close - 4);
  return divide > open ? line.slice(open + 1, close) : null;
}
