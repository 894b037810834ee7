/** The tests end with exit code 0; which tests there are, nobody says. */
import type { OutcomeSource } from '@swefarm/shared';
import { type Evidence, type Outcomes, unreadable } from './evidence.ts';
import type { Case, Judged } from './judged.ts';

export const exitCode = ({ read }: Case): Judged => ({ resolved: read.passed === true, tests: null });

/**
 * Of the script, or with a pattern the number that its first group finds last in the log: what the tests themselves print comes before
 * what the script prints (OpenSWE's is `OPENSWE_EXIT_CODE=(\d+)`).
 *
 * @throws SyntaxError for a pattern that is no regular expression
 */
export function readExitCode(
  { pattern }: Extract<OutcomeSource, { from: 'exit_code' }>,
  { log, exitCode: code }: Evidence,
): Outcomes {
  const number = pattern === undefined ? code : lastNumber(log, new RegExp(pattern, 'g'));
  if (number === null) return unreadable('no_sign_of_tests');
  return { readable: true, outcomes: new Map(), text: null, passed: number === 0 };
}

function lastNumber(log: string, pattern: RegExp): number | null {
  let last: string | undefined;
  for (const match of log.matchAll(pattern)) last = match[1];
  return last !== undefined && /^-?\d{1,9}$/.test(last) ? Number(last) : null;
}
