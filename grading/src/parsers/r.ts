/** R's testthat and R CMD check as SWE-rebench V2 reads them. */
import { linesOf, SPACE, strip, stripEnd } from '../text/pythontext.ts';
import { type Reader, statuses } from './reader.ts';

const S = `[${SPACE}]`;
const BRACKET_TIME = new RegExp(`^\\[${S}*[\\p{Nd}.]+${S}*m?s${S}*\\]$`, 'u');

/** testthat's files, then the tests that failed. */
export const testthat: Reader = (log) => {
  const found = statuses();
  let failed = false;
  for (const raw of linesOf(log)) {
    const line = strip(raw);
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

function withoutTime(name: string): string {
  const open = name.endsWith(']') ? name.lastIndexOf('[') : -1;
  return open > 0 && BRACKET_TIME.test(name.slice(open)) ? stripEnd(name.slice(0, open)) : name;
}

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

/** `* checking NAME ... WORD`; without a word on its line, the first later line that is only a word tells, and what lies between is lost. */
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
    const told = strip(line.slice(dots + DOTS.length));
    if (told === '') open = name;
    else if (/^[\p{L}\p{N}_]+$/u.test(told)) found.set(name, CHECK[told] ?? 'PASSED');
  }
  if (open !== null) found.set(open, 'PASSED');
  return found;
};
