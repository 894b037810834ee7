/** Reads R's testthat and R CMD check as SWE-rebench V2 does. */
import { linesOf, S, strip, strippedLines } from '../text/pythontext.ts';
import { dropSuffix } from './endings.ts';
import { type Reader, statuses } from './reader.ts';

const BRACKET_TIME = new RegExp(`^\\[${S}*[\\p{Nd}.]+${S}*m?s${S}*\\]$`, 'u');

/** Reads testthat: `✔ | … | FILE` and `✖ | … | FILE`, then `Error (…): NAME` and `Failure (…): NAME` below `Failed tests`. */
export const testthat: Reader = (log) => {
  const found = statuses();
  let failed = false;
  for (const line of strippedLines(log)) {
    if (line.includes('Failed tests')) failed = true;
    const bar = line.lastIndexOf('|');
    const passed = line.startsWith('✔ |');
    if ((passed || line.startsWith('✖ |')) && bar > 2) {
      const name = withoutTime(strip(line.slice(bar + 1)));
      if (name !== '') found.set(name, passed ? 'PASSED' : 'FAILED');
    } else if (failed) {
      const error = line.startsWith('Error (');
      const close = error || line.startsWith('Failure (') ? line.indexOf('):') : -1;
      const name = close < 0 ? '' : withoutTime(strip(line.slice(close + 2)));
      if (name !== '') found.set(name, error ? 'ERROR' : 'FAILED');
    }
  }
  return found;
};

const withoutTime = (name: string): string => dropSuffix(name, '[', BRACKET_TIME);

const CHECK: Record<string, string> = {
  OK: 'PASSED',
  NOTE: 'PASSED',
  WARNING: 'FAILED',
  FAIL: 'FAILED',
  FAILED: 'FAILED',
  ERROR: 'ERROR',
  SKIPPED: 'SKIPPED',
};
const BEGIN = '* checking ';
const DOTS = ' ...';

/** Reads `* checking NAME ... WORD`. If the word is missing, the next line that consists of a word in `CHECK` decides. */
export const rCheck: Reader = (log) => {
  const found = statuses();
  let open: string | null = null;
  for (const line of linesOf(log)) {
    const word = strip(line);
    if (open !== null) {
      if (!Object.hasOwn(CHECK, word)) continue;
      found.set(open, CHECK[word] ?? '');
      open = null;
      continue;
    }
    const dots = line.startsWith(BEGIN) ? line.lastIndexOf(DOTS) : -1;
    if (dots <= BEGIN.length) continue;
    const name = line.slice(BEGIN.length, dots);
    const status = strip(line.slice(dots + DOTS.length));
    if (status === '') open = name;
    else if (/^[\p{L}\p{N}_]+$/u.test(status)) found.set(name, CHECK[status] ?? 'PASSED');
  }
  if (open !== null) found.set(open, 'PASSED');
  return found;
};
