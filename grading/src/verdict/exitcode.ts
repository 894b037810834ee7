/** Judges by the exit code of the tests: 0 means resolved. The results of single tests are unknown. */
import type { OutcomeSource } from '@swefarm/shared';
import { lastExitCode, readExitPattern } from '../text/exitpattern.ts';
import { type Evidence, type Outcomes, unreadable } from './evidence.ts';
import type { Case, Judged } from './judged.ts';

export const exitCode = ({ read }: Case): Judged => ({ resolved: read.passed === true, tests: null });

/**
 * Reads the exit code of the script. With `pattern`, reads the last number in the log that the pattern finds (OpenSWE:
 * `OPENSWE_EXIT_CODE=(\d+)`), because tests may print earlier numbers. `planEvaluation` rejects patterns of another form.
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
