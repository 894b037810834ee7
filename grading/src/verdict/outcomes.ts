/** Reads the outcomes of the tests from where a plan says that they are. Each source is one function of {@link SOURCES}. */
import type { Instance, InstancePlan, OutcomeSource } from '@swefarm/shared';
import { junitOutcomes, readJUnit } from '../parsers/junit.ts';
import { isSourceRead, type SourceName } from '../plan/supported.ts';
import { type Evidence, type Outcomes, unreadable } from './evidence.ts';
import { readExitCode } from './exitcode.ts';
import { readLogOutcomes } from './logs.ts';
import { readProgramOutput } from './programoutput.ts';
import { readRewardFile } from './rewardfile.ts';

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

/** Without the file there are no outcomes. @throws SyntaxError, RangeError for a file that is no JUnit XML */
function readJUnitFile({ file }: Extract<OutcomeSource, { from: 'junit' }>, { files }: Evidence): Outcomes {
  const xml = files.get(file);
  const outcomes = xml === undefined ? new Map<string, string>() : junitOutcomes(readJUnit(xml));
  return { readable: true, outcomes, text: null };
}

/** Hostile evidence makes it unreadable, and never throws. @throws Error for a source that `isSourceRead` denies */
export function readOutcomes(
  { outcomes: source }: Pick<InstancePlan, 'outcomes'>,
  evidence: Evidence,
  instance: Instance,
): Outcomes {
  if (!isSourceRead(source.from)) throw new Error(`outcomes cannot be read from "${source.from}"`);
  const read = SOURCES[source.from] as (source: OutcomeSource, ...given: [Evidence, Instance]) => Outcomes;
  try {
    return read(source, evidence, instance);
  } catch (error) {
    // Readers throw RangeError (an index, or an exhausted budget) or SyntaxError (malformed data) where Python raises.
    if (error instanceof RangeError || error instanceof SyntaxError) return unreadable('raises');
    throw error;
  }
}
