/** Reads R's testthat and R CMD check as SWE-rebench V2 does. */
import { ending, py, withoutEnd } from '../text/pattern.ts';
import { isSpace, shortLines, strip } from '../text/pythontext.ts';
import { byStrippedLine, type Reader, reading, STATUS, statusOf } from './reader.ts';

const TIME = ending`(?<=.)\s*\[\s*[\d.]+\s*m?s\s*\]`;
const FILE = py`^([✔✖]) \|.*\|\s*([^|]*[^|\s])$`;
const FAILURE = py`^(Error|Failure) \(.*?\):\s*(.+)$`;

/** Reads testthat: `✔ | … | FILE` and `✖ | … | FILE`, then `Error (…): NAME` and `Failure (…): NAME` below `Failed tests`. */
export const testthat: Reader = (log, context) => {
  let failed = false;
  return byStrippedLine((line, found) => {
    if (line.includes('Failed tests')) failed = true;
    const [, word, name = ''] = FILE.exec(line) ?? (failed ? FAILURE.exec(line) : null) ?? [];
    if (word !== undefined) found.set(withoutEnd(name, TIME), STATUS[word] ?? '');
  })(log, context);
};

const CHECK = statusOf({
  OK: 'PASSED',
  NOTE: 'PASSED',
  WARNING: 'FAILED',
  FAIL: 'FAILED',
  FAILED: 'FAILED',
  ERROR: 'ERROR',
  SKIPPED: 'SKIPPED',
});
const CHECKING = py`^\* checking (.+) \.\.\.(.*)$`;

/** Reads `* checking NAME ... WORD`. If the word is missing, the next line that consists of a word in `CHECK` decides. */
export const rCheck = reading((log, found) => {
  let open: string | null = null;
  // A line that begins with a blank keeps one, because it names no check.
  const clean = (line: string): string => `${isSpace(line[0]) ? ' ' : ''}${strip(line)}`;
  for (const line of shortLines(log, clean)) {
    const word = strip(line);
    if (open !== null) {
      const status = CHECK[word];
      if (status === undefined) continue;
      found.set(open, status);
      open = null;
      continue;
    }
    const [, name, rest] = CHECKING.exec(line) ?? [];
    if (name === undefined || rest === undefined) continue;
    const status = strip(rest);
    if (status === '') open = name;
    else if (/^[\p{L}\p{N}_]+$/u.test(status)) found.set(name, CHECK[status] ?? 'PASSED');
  }
  if (open !== null) found.set(open, 'PASSED');
});
