/** The options of a collection: sets, until enough is resolved, budgets, the order, what runs again, and prices. */

import { queueMore, rolloutIds } from '@swefarm/runs';
import {
  costOf,
  type Instance,
  type Price,
  type ProducerConfig,
  parseRolloutId,
  type Result,
  type RunRecord,
  UsageError,
} from '@swefarm/shared';
import type { CollectOptions, OutputFormat, OutputRun } from '@swefarm/trajectories';
import {
  type CollectionMark,
  type LineSummary,
  lineSummaryOf,
  type OutputLine,
  type PriceFile,
  priceFor,
  readLines,
} from '@swefarm/trajectories';
import { InvalidArgumentError } from 'commander';
import { type Budget, Feeder, longestFirst, rolloutsAgain } from '../collection/feeder.ts';
import { flag, group, list, parsed, text, type Values, whole } from './declare.ts';
import type { ConfigValues } from './options.ts';
import type { Session } from './session.ts';
import { say } from './terminal.ts';

/** Rollouts that are queued or running at once while a budget holds: what the budget can be overrun by. */
const IN_FLIGHT = 32;

export const COLLECTION = group('Collection:', {
  '--set <tag:settings>': list(
    'a run of its own with these settings, such as t05:temperature=0.5,n=8; its lines carry the tag, and its files (repeatable)',
  ),
  '--until-resolved <k>': whole(
    'queue rollouts of an instance one after the other until k are resolved, or --max-rollouts have run',
  ),
  '--max-rollouts <n>': whole('most rollouts of an instance (default: --group-size)'),
  '--budget-tokens <n>': whole('queue no more once the results say so many tokens'),
  '--budget-cost <dollars>': parsed('queue no more once they cost so much; needs --prices', amount),
  '--budget-seconds <s>': parsed('queue no more after this time', amount),
  '--in-flight <n>': whole(`with a budget: most rollouts queued or running at once (default: ${IN_FLIGHT})`),
  '--longest-first <output>': text('queue first what took longest in an earlier output'),
  '--again <output>': text('run only rollouts of an earlier output again: see the next two'),
  '--only-failures <classes>': parsed(
    'with --again: those that failed with one of these classes (a,b), or all',
    (classes) => classes.split(',').map((one) => one.trim()),
  ),
  '--only-unscored': flag('with --again: those without a reward, whatever the reason'),
});

/** What a command with these options is given; `tag`: the set that it runs. */
export type CollectionValues = Values<typeof COLLECTION> & { farm: ConfigValues; tag?: string | undefined };

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
export async function readAgain(o: CollectionValues): Promise<Again | null> {
  const { again: earlier, onlyFailures: classes, onlyUnscored: unscored } = o;
  if (earlier === undefined) {
    if (!classes && !unscored) return null;
    throw new UsageError(
      '--only-failures and --only-unscored choose from an earlier output: name it with --again',
    );
  }
  if ((classes !== undefined) === unscored) {
    throw new UsageError('--again: say which rollouts, with --only-failures CLASS or with --only-unscored');
  }
  const lines: LineSummary[] = [];
  for await (const line of readLines(earlier)) lines.push(lineSummaryOf(line));
  const again = rolloutsAgain(lines, ({ failure, reward }) =>
    unscored
      ? reward === null
      : failure !== null && (classes?.includes('all') || classes?.includes(failure.class)) === true,
  );
  if (again.only.size > 0) return again;
  const known = [...new Set(lines.flatMap(({ failure }) => failure?.class ?? []))].join(', ');
  throw new UsageError(
    `${earlier}: has no such rollout; ${known === '' ? 'none failed' : `its failures are ${known}`}`,
  );
}

/** The size of groups that is large enough for the collection; undefined: as the run's settings say. */
export function groupSizeOf(
  { maxRollouts }: CollectionValues,
  given: unknown,
  again: Again | null,
): string | undefined {
  const indices = [...(again?.only.values() ?? [])].flatMap((own) => [...own]);
  if (maxRollouts === undefined && indices.length === 0) return undefined;
  return String(Math.max(maxRollouts ?? Number(given ?? 1), ...indices.map((index) => index + 1)));
}

const budgetOf = (o: Partial<CollectionValues>): Budget => ({
  tokens: o.budgetTokens ?? null,
  cost: o.budgetCost ?? null,
  seconds: o.budgetSeconds ?? null,
});

/** Whether rollouts are queued as results come, and not all at once. */
export const queuesAsNeeded = (o: Partial<CollectionValues>): boolean =>
  [o.untilResolved, o.again, ...Object.values(budgetOf(o))].some((one) => (one ?? null) !== null);

/** Throws UsageError for options that do not go together, before anything is written. */
export function checkCollection(o: CollectionValues, config: ProducerConfig, record: RunRecord): void {
  readPrice(o, config, record);
  if (!queuesAsNeeded(o) || record.refills + record.oversample === 0) return;
  throw new UsageError(
    '--refills and --oversample decide themselves what runs; they do not go with a budget, --until-resolved or --again',
  );
}

/** Throws UsageError for files that cannot be read. */
export async function openCollection(
  session: Pick<Session, 'farm' | 'config' | 'record' | 'instances' | 'output'>,
  o: CollectionValues,
  again: Again | null,
): Promise<Collection> {
  const { farm, config, record, output } = session;
  const price = readPrice(o, config, record);
  const instances = await orderOf(o, session.instances);
  requireInstances(again, o.again, instances);
  const mark = markOf(o.tag, price, again);
  const budget = budgetOf(o);
  const limited = Object.values(budget).some((most) => most !== null);
  if (!queuesAsNeeded(o)) {
    const rollouts = new Set(rolloutIds(record, instances));
    return { instances, rollouts, collecting: { mark }, queued: () => undefined };
  }
  const feeder = new Feeder(
    {
      runId: record.run_id,
      instanceIds: instances.map(({ instance_id: id }) => id),
      perInstance: record.group_size,
      untilResolved: o.untilResolved ?? null,
      budget,
      inFlight: limited ? (o.inFlight ?? IN_FLIGHT) : null,
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
export const orderOf = async (
  { longestFirst: history }: CollectionValues,
  instances: readonly Instance[],
): Promise<readonly Instance[]> =>
  history === undefined
    ? instances
    : longestFirst(instances, await Array.fromAsync(readLines(history), lineSummaryOf));

/** What stands beside an output of a collection. */
export const outputRunOf = (
  record: RunRecord,
  state_dir: string | null,
  rows: OutputFormat,
  o: Partial<CollectionValues>,
): OutputRun => ({
  format: 'swefarm-output-1',
  record,
  state_dir,
  rows,
  ...(o.tag === undefined ? {} : { tag: o.tag }),
  ...(queuesAsNeeded(o) ? { as_needed: true } : {}),
  ...(o.untilResolved === undefined ? {} : { until_resolved: true }),
});

function requireInstances(again: Again | null, name = '', instances: readonly Instance[]): void {
  const there = new Set(instances.map(({ instance_id: id }) => id));
  const missing = [...(again?.only.keys() ?? [])].filter((id) => !there.has(id));
  if (missing.length === 0) return;
  say(
    `swefarm: ${missing.length} instances of ${name} are not in the dataset and are left out: ${missing.slice(0, 5).join(', ')}`,
  );
  if (missing.length === again?.only.size)
    throw new UsageError(`${name}: none of its instances is in the dataset`);
}

/** The file of prices of a command. */
export const priceFileOf = (
  { farm }: { farm: ConfigValues },
  { prices }: ProducerConfig,
): PriceFile | null => (prices === null ? null : { path: prices, named: farm.prices !== undefined });

/** What the lines of a run cost; null: not known. Throws UsageError for a file without the price that is needed. */
export function readPrice(
  o: Pick<CollectionValues, 'farm'> & Partial<CollectionValues>,
  config: ProducerConfig,
  { policy }: RunRecord,
): Price | null {
  const price = priceFor(priceFileOf(o, config), policy);
  if (price === null && o.budgetCost !== undefined)
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
