/** The tests end with exit code 0; which tests there are, nobody says. */
import type { OutcomeSource } from '@swefarm/shared';
import { lastExitCode, readExitPattern } from '../text/exitpattern.ts';
import { type Evidence, type Outcomes, unreadable } from './evidence.ts';
import type { Case, Judged } from './judged.ts';

export const exitCode = ({ read }: Case): Judged => ({ resolved: read.passed === true, tests: null });

/**
 * Of the script, or with a pattern the number that it finds last in the log: what the tests themselves print comes before what the
 * script prints (OpenSWE's is `OPENSWE_EXIT_CODE=(\d+)`). Patterns of another form are refused when the instance is planned.
 */
export function readExitCode(
  { pattern }: Extract<OutcomeSource, { from: 'exit_code' }>,
  { log, exitCode: code }: Evidence,
): Outcomes {
  const read = pattern === undefined ? null : readExitPattern(pattern);
  const number = pattern === undefined ? code : read && lastExitCode(read, log);
  if (number === null) return unreadable('no_sign_of_tests');
  return { readable: true, outcomes: new Map(), text: null, passed: number === 0 };
}
