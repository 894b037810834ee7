import { type ProgramSource, parseProgramOutput } from '@swefarm/shared';
import { type Evidence, type Outcomes, parserFailed } from './evidence.ts';

/**
 * Returns the statuses that the program wrote. If a test has several entries, a pass counts, because SWE-bench Pro checks whether a name
 * occurs with PASSED. In the form `sets`, a test in two sets makes the output invalid, as in Multi-SWE-bench.
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
