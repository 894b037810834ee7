/** Reads the outcomes of the tests from the source of a plan. Each source has one function. */
import type { Instance, InstancePlan, OutcomeSource } from '@swefarm/shared';
import { junitOutcomes, readJUnit } from '../parsers/junit.ts';
import { type Evidence, type Outcomes, unreadable } from './evidence.ts';
import { readExitCode } from './exitcode.ts';
import { readLogOutcomes } from './logs.ts';
import { readProgramOutput } from './programoutput.ts';
import { readRewardFile } from './rewardfile.ts';

type SourceName = OutcomeSource['from'];
type ReadSource<F extends SourceName> = (
  source: Extract<OutcomeSource, { from: F }>,
  evidence: Evidence,
  instance: Instance,
) => Outcomes;

const SOURCES: { [F in SourceName]: ReadSource<F> } = {
  log: readLogOutcomes,
  exit_code: readExitCode,
  junit: readJUnitFile,
  program: readProgramOutput,
  reward: readRewardFile,
};

/** Returns no outcomes if the file is missing. @throws SyntaxError, RangeError if the file is not JUnit XML */
function readJUnitFile({ file }: Extract<OutcomeSource, { from: 'junit' }>, { files }: Evidence): Outcomes {
  const xml = files.get(file);
  const outcomes = xml === undefined ? new Map<string, string>() : junitOutcomes(readJUnit(xml));
  return { readable: true, outcomes, text: null };
}

/** Reads the outcomes. Returns `unreadable` for hostile evidence instead of throwing an error. */
export function readOutcomes(
  { outcomes: source }: Pick<InstancePlan, 'outcomes'>,
  evidence: Evidence,
  instance: Instance,
): Outcomes {
  const read = SOURCES[source.from] as (source: OutcomeSource, ...given: [Evidence, Instance]) => Outcomes;
  try {
    return read(source, evidence, instance);
  } catch (error) {
    // Readers throw RangeError or SyntaxError where the harness raises an exception, and RangeError if the input exceeds a limit.
    if (error instanceof RangeError || error instanceof SyntaxError) return unreadable('raises');
    throw error;
  }
}
