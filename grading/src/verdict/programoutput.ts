/** Reads what a program wrote of the outcomes of tests. */
import { type ProgramSource, parseProgramOutput } from '@swefarm/shared';
import { type Evidence, type Outcomes, parserFailed } from './evidence.ts';

/**
 * Statuses are the program's own words. Of several entries of one test a pass counts, as SWE-bench Pro asks whether a name occurs with
 * PASSED. A test in two sets has no status: the package of Multi-SWE refuses such a log itself.
 */
export function readProgramOutput({ form }: ProgramSource, { program }: Evidence): Outcomes {
  if (program === undefined) return parserFailed('it did not run');
  if ('failed' in program) return parserFailed(program.failed);
  const read = parseProgramOutput(program.output, form);
  if ('problem' in read) return parserFailed(`of its output: ${read.problem}`);
  const outcomes = new Map<string, string>();
  for (const [test, status] of read.tests) {
    const before = outcomes.get(test);
    if (form === 'sets' && before !== undefined) return parserFailed('of its output: a test is in two sets');
    if (before !== 'PASSED') outcomes.set(test, status);
  }
  return { readable: true, outcomes, text: null };
}
