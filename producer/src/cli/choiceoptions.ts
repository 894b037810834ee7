/** The options that choose rollouts of stored results. */
import { ExitStatus, UsageError } from '@swefarm/shared';
import type { ExportFilters } from '@swefarm/trajectories';
import { PREFERENCES } from '@swefarm/trajectories';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { expandIds } from './ids.ts';
import { type Flags, wholeNumber } from './options.ts';

const gather = (value: string, earlier: string[] | undefined): string[] => [...(earlier ?? []), value];

const SPLITS = ['train', 'val'] as const;

export function addChoiceOptions(command: Command): Command {
  // A default counts from the moment in which the command gets the option.
  const options: Option[] = [];
  const add = (flag: string, help: string): Option => {
    const option = new Option(flag, help).helpGroup('Which rollouts:');
    options.push(option);
    return option;
  };
  add('--only-resolved', 'only resolved rollouts');
  add('--min-reward <reward>', 'only rollouts with at least this reward').argParser(decimal);
  add('--trust <level>', 'clean: only verdicts that nothing speaks against').choices(['clean']);
  add('--with-failed', 'also rollouts that infrastructure failed');
  add('--tag <tag>', 'only rollouts of this set (repeatable)').argParser(gather);
  add('--run <id>', 'only rollouts of this run (repeatable)').argParser(gather);
  add(
    '--instances <ids>',
    'only these instances: a,b,c, or @FILE with one id per line (repeatable)',
  ).argParser(gather);
  add('--exit-status <status>', 'only rollouts that ended so (repeatable)').argParser(gather);
  add('--most-turns <n>', 'only rollouts with at most n turns').argParser(wholeNumber);
  add('--max-tokens <n>', 'only conversations of at most n tokens').argParser(wholeNumber);
  add('--dedup-patches', 'near-identical patches of an instance once');
  add('--per-instance <n>', 'at most n rollouts of each instance').argParser(positive);
  add('--prefer <which>', 'which rollouts of an instance go first').choices(PREFERENCES).default('first');
  add('--seed <n>', 'of --prefer random and --balance').argParser(wholeNumber).default(0);
  add('--balance', 'as many resolved rollouts as others');
  add('--split <side>', 'one side of a division by instance').choices(SPLITS);
  add('--val-share <share>', 'share of instances, chosen by their ids, on the side val')
    .argParser(share)
    .default(0.05);
  for (const option of options) command.addOption(option);
  return command;
}

/** Throws UsageError for a value that no rollout has. */
export function filtersOf(flags: Flags): ExportFilters {
  const exitStatuses = flags.exitStatus as string[] | undefined;
  for (const status of exitStatuses ?? []) {
    if (!ExitStatus.options.some((known) => known === status)) {
      throw new UsageError(`--exit-status ${status}: expected one of ${ExitStatus.options.join(', ')}`);
    }
  }
  const side = flags.split as (typeof SPLITS)[number] | undefined;
  return {
    onlyResolved: flags.onlyResolved === true,
    minReward: flags.minReward as number | undefined,
    trustClean: flags.trust === 'clean',
    withFailed: flags.withFailed === true,
    tags: flags.tag as string[] | undefined,
    runs: flags.run as string[] | undefined,
    instances: idsOf(flags.instances as string[] | undefined),
    exitStatuses,
    maxTurns: flags.mostTurns as number | undefined,
    split: side === undefined ? undefined : { side, valShare: flags.valShare as number },
  };
}

function idsOf(given: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return given && new Set(given.flatMap((ids) => expandIds(ids, '--instances')));
}

function decimal(value: string): number {
  const parsed = Number(value);
  if (value.trim() === '' || !Number.isFinite(parsed)) throw new InvalidArgumentError('expected a number.');
  return parsed;
}

function positive(value: string): number {
  const parsed = wholeNumber(value);
  if (parsed < 1) throw new InvalidArgumentError('expected 1 or more.');
  return parsed;
}

function share(value: string): number {
  const parsed = decimal(value);
  if (parsed < 0 || parsed > 1) throw new InvalidArgumentError('expected a share between 0 and 1.');
  return parsed;
}
