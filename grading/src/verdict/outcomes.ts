/** Reads the outcomes of the tests from where a plan says that they are. Each source is one function of {@link SOURCES}. */
import type { Instance, InstancePlan, OutcomeSource } from '@swefarm/shared';
import { isSourceRead, type SourceName } from '../plan/supported.ts';
import { type Evidence, type Outcomes, unreadable } from './evidence.ts';
import { readLogOutcomes } from './logs.ts';

type ReadSource<F extends SourceName> = (
  source: Extract<OutcomeSource, { from: F }>,
  evidence: Evidence,
  instance: Instance,
) => Outcomes;

const SOURCES: { [F in SourceName]: ReadSource<F> } = {
  log: readLogOutcomes,
};

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
