/** The options of a collection: sets, until enough is resolved, budgets, the order, what runs again, and prices. */

import { queueMore, rolloutIds } from '@swefarm/runs';
import {
  costOf,
  type Farm,
  type Instance,
  type Price,
  type ProducerConfig,
  parseRolloutId,
  type Result,
  type RunRecord,
  UsageError,
} from '@swefarm/shared';
import type { CollectOptions, Output, OutputFormat, OutputRun } from '@swefarm/trajectories';
import {
  type CollectionMark,
  type LineSummary,
  lineSummaryOf,
  type OutputLine,
  type PriceFile,
  priceFor,
  readLines,
} from '@swefarm/trajectories';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type Budget, Feeder, longestFirst, rolloutsAgain } from '../collection/feeder.ts';
import { type Flags, gather, wholeNumber } from './options.ts';
import { say } from './terminal.ts';

/** Rollouts that are queued or running at once while a budget holds: what the budget can be overrun by. */
const IN_FLIGHT = 32;

export function addCollectionOptions(command: Command): Command {
  const add = (flag: string, help: string): Option => new Option(flag, help).helpGroup('Collection:');
  return command
    .addOption(
      add(
        '--set <tag:settings>',
        'a run of its own with these settings, such as t05:temperature=0.5,n=8; its lines carry the tag, and its files (repeatable)',
      ).argParser(gather),
    )
    .addOption(
      add(
        '--until-resolved <k>',
        'queue rollouts of an instance one after the other until k are resolved, or --max-rollouts have run',
      ).argParser(wholeNumber),
    )
    .addOption(
      add('--max-rollouts <n>', 'most rollouts of an instance (default: --group-size)').argParser(
        wholeNumber,
      ),
    )
    .addOption(
      add('--budget-tokens <n>', 'queue no more once the results say so many tokens').argParser(wholeNumber),
    )
    .addOption(
      add('--budget-cost <dollars>', 'queue no more once they cost so much; needs --prices').argParser(
        amount,
      ),
    )
    .addOption(add('--budget-seconds <s>', 'queue no more after this time').argParser(amount))
    .addOption(
      add(
        '--in-flight <n>',
        `with a budget: most rollouts queued or running at once (default: ${IN_FLIGHT})`,
      ).argParser(wholeNumber),
    )
    .addOption(add('--longest-first <output>', 'queue first what took longest in an earlier output'))
    .addOption(add('--again <output>', 'run only rollouts of an earlier output again: see the next two'))
    .addOption(
      add(
        '--only-failures <classes>',
        'with --again: those that failed with one of these classes (a,b), or all',
      ).argParser((text) => text.split(',').map((one) => one.trim())),
    )
    .addOption(add('--only-unscored', 'with --again: those without a reward, whatever the reason'));
}

function amount(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError('expected a number above 0.');
}

export type Collection = {
  /** In the order of queueing. */
  instances: readonly Instance[];
  /** To be queued at once. */
  rollouts: ReadonlySet<string>;
  collecting: Pick<CollectOptions, 'feed' | 'mark' | 'onLine'>;
  /** Null: all rollouts of the run are wanted. */
  queued(): { rollouts: number; stopped: string | null } | undefined;
};

/** What `--again` takes; read before the run's record, which must have room for it. */
export type Again = ReturnType<typeof rolloutsAgain>;

/** Throws UsageError. */
export async function readAgain(flags: Flags): Promise<Again | null> {
  const classes = flags.onlyFailures as string[] | undefined;
  const unscored = flags.onlyUnscored === true;
  if (flags.again === undefined) {
    if (!classes && !unscored) return null;
    throw new UsageError(
      '--only-failures and --only-unscored choose from an earlier output: name it with --again',
    );
  }
  if ((classes !== undefined) === unscored) {
    throw new UsageError('--again: say which rollouts, with --only-failures CLASS or with --only-unscored');
  }
  const lines: LineSummary[] = [];
  for await (const line of readLines(String(flags.again))) lines.push(lineSummaryOf(line));
  const again = rolloutsAgain(lines, ({ failure, reward }) =>
    unscored
      ? reward === null
      : failure !== null && (classes?.includes('all') || classes?.includes(failure.class)) === true,
  );
  if (again.only.size > 0) return again;
  const known = [...new Set(lines.flatMap(({ failure }) => failure?.class ?? []))].join(', ');
  throw new UsageError(
    `${flags.again}: has no such rollout; ${known === '' ? 'none failed' : `its failures are ${known}`}`,
  );
}

/** The flags with a group that is large enough for the collection. */
export function withGroupSize(flags: Flags, again: Again | null): Flags {
  const indices = [...(again?.only.values() ?? [])].flatMap((own) => [...own]);
  const most = (flags.maxRollouts as number | undefined) ?? Number(flags.groupSize ?? 1);
  const size = Math.max(most, ...indices.map((index) => index + 1));
  return flags.maxRollouts === undefined && indices.length === 0
    ? flags
    : { ...flags, groupSize: String(size) };
}

const budgetOf = (flags: Flags): Budget => ({
  tokens: (flags.budgetTokens as number | undefined) ?? null,
  cost: (flags.budgetCost as number | undefined) ?? null,
  seconds: (flags.budgetSeconds as number | undefined) ?? null,
});

/** Whether rollouts are queued as results come, and not all at once. */
export const queuesAsNeeded = (flags: Flags): boolean =>
  [flags.untilResolved, flags.again, ...Object.values(budgetOf(flags))].some((one) => (one ?? null) !== null);

/** Throws UsageError for options that do not go together, before anything is written. */
export function checkCollection(flags: Flags, config: ProducerConfig, record: RunRecord): void {
  readPrice(flags, config, record);
  if (!queuesAsNeeded(flags) || record.refills + record.oversample === 0) return;
  throw new UsageError(
    '--refills and --oversample decide themselves what runs; they do not go with a budget, --until-resolved or --again',
  );
}

/** Throws UsageError for files that cannot be read. */
export async function openCollection(
  farm: Farm,
  given: {
    flags: Flags;
    config: ProducerConfig;
    record: RunRecord;
    instances: readonly Instance[];
    output: Output;
    again: Again | null;
  },
): Promise<Collection> {
  const { flags, config, record, output, again } = given;
  const price = readPrice(flags, config, record);
  const instances = await orderOf(flags, given.instances);
  requireInstances(flags, again, instances);
  const mark = markOf(flags.tag as string | undefined, price, again);
  const budget = budgetOf(flags);
  const untilResolved = (flags.untilResolved as number | undefined) ?? null;
  const limited = Object.values(budget).some((most) => most !== null);
  if (!queuesAsNeeded(flags)) {
    const rollouts = new Set(rolloutIds(record, instances));
    return { instances, rollouts, collecting: { mark }, queued: () => undefined };
  }
  const feeder = new Feeder(
    {
      runId: record.run_id,
      instanceIds: instances.map(({ instance_id: id }) => id),
      perInstance: record.group_size,
      untilResolved,
      budget,
      inFlight: limited ? ((flags.inFlight as number | undefined) ?? IN_FLIGHT) : null,
      only: again?.only ?? null,
      costOf: (line) => (price ? costOf(line.tokens, price) : 0),
    },
    output.lines.values(),
  );
  const rollouts = new Set(feeder.next());
  let queued = output.lines.size + rollouts.size;
  const feed = async (): Promise<string[]> => {
    const ids = feeder.next();
    if (ids.length > 0) await queueMore(farm, record, ids);
    queued += ids.length;
    return ids;
  };
  const onLine = (line: OutputLine): void => feeder.note(lineSummaryOf(line));
  return {
    instances,
    rollouts,
    collecting: { feed, mark, onLine },
    queued: () => ({ rollouts: queued, stopped: feeder.stopped }),
  };
}

/** In the order in which they are queued. Throws UsageError for a history that cannot be read. */
export const orderOf = async (flags: Flags, instances: readonly Instance[]): Promise<readonly Instance[]> =>
  flags.longestFirst === undefined
    ? instances
    : longestFirst(instances, await Array.fromAsync(readLines(String(flags.longestFirst)), lineSummaryOf));

/** What stands beside an output of a collection. */
export const outputRunOf = (
  record: RunRecord,
  stateDir: string | null,
  rows: OutputFormat,
  flags: Flags,
): OutputRun => ({
  format: 'swefarm-output-1',
  record,
  state_dir: stateDir,
  rows,
  ...(flags.tag === undefined ? {} : { tag: String(flags.tag) }),
  ...(queuesAsNeeded(flags) ? { as_needed: true } : {}),
  ...((flags.untilResolved ?? null) === null ? {} : { until_resolved: true }),
});

function requireInstances(flags: Flags, again: Again | null, instances: readonly Instance[]): void {
  const there = new Set(instances.map(({ instance_id: id }) => id));
  const missing = [...(again?.only.keys() ?? [])].filter((id) => !there.has(id));
  if (missing.length === 0) return;
  say(
    `swefarm: ${missing.length} instances of ${flags.again} are not in the dataset and are left out: ${missing.slice(0, 5).join(', ')}`,
  );
  if (missing.length === again?.only.size)
    throw new UsageError(`${flags.again}: none of its instances is in the dataset`);
}

/** The file of prices of a command. */
export const priceFileOf = (flags: Flags, { prices }: ProducerConfig): PriceFile | null =>
  prices === null ? null : { path: prices, named: flags.prices !== undefined };

/** What the lines of a run cost; null: not known. Throws UsageError for a file without the price that is needed. */
export function readPrice(flags: Flags, config: ProducerConfig, { policy }: RunRecord): Price | null {
  const price = priceFor(priceFileOf(flags, config), policy);
  if (price === null && flags.budgetCost !== undefined)
    throw new UsageError('--budget-cost needs --prices FILE with the price of the model');
  return price;
}

/** What the lines of a collection say beside their results. */
export const markOf =
  (tag: string | undefined, price: Price | null, again: Again | null) =>
  (result: Result): CollectionMark => {
    const { instanceId, index } = parseRolloutId(result.rollout_id);
    const replaces = again?.replaces.get(`${instanceId}.${index}`);
    return {
      ...(tag === undefined ? {} : { tag }),
      ...(price ? { cost: costOf(result.tokens, price) } : {}),
      ...(replaces === undefined ? {} : { replaces }),
    };
  };
