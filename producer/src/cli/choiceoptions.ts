/** Options that select rollouts from stored results. */
import { ExitStatus, UsageError } from '@swefarm/shared';
import type { ExportFilters } from '@swefarm/trajectories';
import { PREFERENCES } from '@swefarm/trajectories';
import { choice, defaulted, flag, group, list, number, share, type Values, whole } from './declare.ts';
import { expandIds } from './options.ts';

const SPLITS = ['train', 'val'] as const;

export const CHOICE = group('Which rollouts:', {
  '--only-resolved': flag('only resolved rollouts'),
  '--min-reward <reward>': number('only rollouts with at least this reward', 'a number', Number.isFinite),
  '--trust <level>': choice('clean: only verdicts without a finding against them', ['clean']),
  '--with-failed': flag('also rollouts that infrastructure failed'),
  '--tag <tag>': list('only rollouts of this set (repeatable)'),
  '--run <id>': list('only rollouts of this run (repeatable)'),
  '--instances <ids>': list('only these instances: a,b,c, or @FILE with one id per line (repeatable)'),
  '--exit-status <status>': list('only rollouts that ended so (repeatable)'),
  '--most-turns <n>': whole('only rollouts with at most n turns'),
  '--max-tokens <n>': whole('only conversations of at most n tokens'),
  '--dedup-patches': flag('near-identical patches of an instance once'),
  '--per-instance <n>': number(
    'at most n rollouts of each instance',
    '1 or more',
    (value) => Number.isInteger(value) && value >= 1,
  ),
  '--prefer <which>': defaulted(choice('which rollouts of an instance go first', PREFERENCES), 'first'),
  '--seed <n>': defaulted(whole('of --prefer random and --balance'), 0),
  '--balance': flag('as many resolved rollouts as others'),
  '--split <side>': choice('one side of a division by instance', SPLITS),
  '--val-share <share>': defaulted(share('share of instances, chosen by their ids, on the side val'), 0.05),
});

/** Throws UsageError for an unknown exit status. */
export function choiceFilters(o: Values<typeof CHOICE>): ExportFilters {
  for (const status of o.exitStatus ?? []) {
    if (!ExitStatus.options.some((known) => known === status)) {
      throw new UsageError(`--exit-status ${status}: expected one of ${ExitStatus.options.join(', ')}`);
    }
  }
  return {
    onlyResolved: o.onlyResolved,
    minReward: o.minReward,
    trustClean: o.trust === 'clean',
    withFailed: o.withFailed,
    tags: o.tag,
    runs: o.run,
    instances: o.instances && new Set(o.instances.flatMap((ids) => expandIds(ids, '--instances'))),
    exitStatuses: o.exitStatus,
    maxTurns: o.mostTurns,
    split: o.split === undefined ? undefined : { side: o.split, valShare: o.valShare },
  };
}
