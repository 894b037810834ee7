/** Reads the outcomes of the tests from the source of a plan. Each source has one function. */
import {
  type Instance,
  type InstancePlan,
  type OutcomeSource,
  type ProgramSource,
  parseProgramOutput,
} from '@swefarm/shared';
import { junitOutcomes, readJUnit } from '../parsers/junit.ts';
import { lastExitCode, readExitPattern } from '../text/exitpattern.ts';
import { type Evidence, type Outcomes, parserFailed, unreadable } from './evidence.ts';
import { readLogOutcomes } from './logs.ts';
import { readRewardFile } from './rewardfile.ts';
import { readRewards } from './rewards.ts';

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
  rewards: readRewards,
};

/** Returns no outcomes if the file is missing. @throws SyntaxError, RangeError if the file is not JUnit XML */
function readJUnitFile({ file }: Extract<OutcomeSource, { from: 'junit' }>, { files }: Evidence): Outcomes {
  const xml = files.get(file);
  const outcomes = xml === undefined ? new Map<string, string>() : junitOutcomes(readJUnit(xml));
  return { readable: true, outcomes, text: null };
}

/**
 * Reads the exit code of the script. With `pattern`, reads the last number in the log that the pattern finds (OpenSWE:
 * `OPENSWE_EXIT_CODE=(\d+)`), because tests may print earlier numbers. `planEvaluation` rejects patterns of another form.
 */
function readExitCode(
  { pattern }: Extract<OutcomeSource, { from: 'exit_code' }>,
  { log, exitCode: code }: Evidence,
): Outcomes {
  const read = pattern === undefined ? null : readExitPattern(pattern);
  const number = pattern === undefined ? code : read && lastExitCode(read, log);
  if (number === null) return unreadable('no_sign_of_tests');
  return { readable: true, outcomes: new Map(), text: null, passed: number === 0 };
}

/**
 * Returns the statuses that the program wrote. If a test has several entries, a pass counts, because SWE-bench Pro checks whether a name
 * occurs with PASSED. In the form `sets`, a test in two sets makes the output invalid, as in Multi-SWE-bench.
 */
function readProgramOutput({ form }: ProgramSource, { program }: Evidence): Outcomes {
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

/** Reads the outcomes. Returns `unreadable` for evidence that exceeds a limit, or at which the harness raises an exception. */
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
