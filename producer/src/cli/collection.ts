/** Options of a collection: sets, budgets, order, prices, and rollouts of an earlier output to run again. */
import { queueMore, type RunFlagValues, rolloutIds } from '@swefarm/runs';
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
import type { CollectionMark, OutputFormat, OutputRun, PriceFile } from '@swefarm/trajectories';
import { lineSummaryOf, priceFor, readLines } from '@swefarm/trajectories';
import { type Budget, Feeder, longestFirst, rolloutsAgain } from '../collection/feeder.ts';
import { flag, group, list, number, parsed, text, type Values, whole } from './declare.ts';
import type { ConfigValues } from './options.ts';
import type { OpenRun } from './session.ts';
import { printStatus } from './terminal.ts';

/** Default maximum of rollouts queued or running at once under a budget. These rollouts can exceed the budget. */
const IN_FLIGHT = 32;

const amount = (help: string) => number(help, 'a number above 0', (value) => value > 0 && value < Infinity);

export const COLLECTION = group('Collection:', {
  '--set <tag:settings>': list(
    'a separate run with these settings, such as t05:temperature=0.5,n=8; its lines and files have the tag (repeatable)',
  ),
  '--until-resolved <k>': whole(
    'queue rollouts of an instance one after the other until k are resolved, or --max-rollouts have run',
  ),
  '--max-rollouts <n>': whole('most rollouts of an instance (default: --group-size)'),
  '--budget-tokens <n>': whole('queue no more once the results have so many tokens'),
  '--budget-cost <dollars>': amount('queue no more once they cost so much; needs --prices'),
  '--budget-seconds <s>': amount('queue no more after this time'),
  '--in-flight <n>': whole(`with a budget: most rollouts queued or running at once (default: ${IN_FLIGHT})`),
  '--longest-first <output>': text('queue first the instances that took longest in an earlier output'),
  '--again <output>': text('run only rollouts of an earlier output again: see the next two'),
  '--only-failures <classes>': parsed(
    'with --again: those that failed with one of these classes (a,b), or all',
    (classes) => classes.split(',').map((one) => one.trim()),
  ),
  '--only-unscored': flag('with --again: those without a reward, whatever the reason'),
});

/** `tag`: name of the set (`--set`) that the command runs. */
export type CollectionValues = Values<typeof COLLECTION> & { farm: ConfigValues; tag?: string | undefined };

export type Collection = Pick<OpenRun, 'feed' | 'mark' | 'onLine'> & {
  /** Instances in the order in which they are queued. */
  instances: readonly Instance[];
  /** Ids of the rollouts that are queued at the start. */
  rollouts: ReadonlySet<string>;
  /** Returns the number of queued rollouts and the exhausted budget; undefined if all rollouts are queued at the start. */
  queued(): { rollouts: number; stopped: string | null } | undefined;
};

/** Rollouts of an earlier output to run again (`--again`). */
export type Again = ReturnType<typeof rolloutsAgain>;

/** Reads the output of `--again`. Sets a group size of at least `--max-rollouts` that has the chosen rollouts. Throws UsageError. */
export async function readAgain<O extends CollectionValues & { run: RunFlagValues }>(
  o: O,
): Promise<{ o: O; again: Again | null }> {
  const again = await chooseAgain(o);
  const indices = [...(again?.only.values() ?? [])].flatMap((own) => [...own]);
  if (o.maxRollouts === undefined && indices.length === 0) return { o, again };
  const least = o.maxRollouts ?? Number(o.run.groupSize ?? 1);
  const groupSize = String(Math.max(least, ...indices.map((index) => index + 1)));
  return { o: { ...o, run: { ...o.run, groupSize } }, again };
}

async function chooseAgain(o: CollectionValues): Promise<Again | null> {
  const { again: earlier, onlyFailures: classes, onlyUnscored: unscored } = o;
  if (earlier === undefined) {
    if (!classes && !unscored) return null;
    throw new UsageError(
      '--only-failures and --only-unscored choose from an earlier output: name it with --again',
    );
  }
  if ((classes !== undefined) === unscored) {
    throw new UsageError('--again: choose rollouts with --only-failures CLASS or with --only-unscored');
  }
  const lines = await Array.fromAsync(readLines(earlier), lineSummaryOf);
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

const budgetOf = (o: Partial<CollectionValues>): Budget => ({
  tokens: o.budgetTokens ?? null,
  cost: o.budgetCost ?? null,
  seconds: o.budgetSeconds ?? null,
});

/** Returns whether rollouts are queued while results arrive, and not all at the start. */
export const queuesAsNeeded = (o: Partial<CollectionValues>): boolean =>
  [o.untilResolved, o.again, ...Object.values(budgetOf(o))].some((one) => (one ?? null) !== null);

/** Decides which rollouts are queued at the start and after each result. Throws UsageError. */
export async function openCollection(
  { farm, config, record, output }: Pick<OpenRun, 'farm' | 'config' | 'record' | 'output'>,
  given: readonly Instance[],
  o: CollectionValues,
  again: Again | null,
): Promise<Collection> {
  const price = readPrice(o, config, record);
  const instances = await orderOf(o, given);
  warnOfMissing(again, o.again, instances);
  const start = { instances, mark: markOf(o.tag, price, again) };
  // The farm draws the groups of such a run, and the collector finds their rollouts there.
  if (record.until !== null) return { ...start, rollouts: new Set(), queued: () => undefined };
  if (!queuesAsNeeded(o))
    return { ...start, rollouts: new Set(rolloutIds(record, instances)), queued: () => undefined };
  const budget = budgetOf(o);
  const limited = Object.values(budget).some((most) => most !== null);
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
  return {
    ...start,
    rollouts,
    async feed() {
      const ids = feeder.next();
      if (ids.length > 0) await queueMore(farm, record, ids);
      queued += ids.length;
      return ids;
    },
    onLine: (line) => feeder.note(lineSummaryOf(line)),
    queued: () => ({ rollouts: queued, stopped: feeder.stopped }),
  };
}

/** Returns the instances in the order in which they are queued. Throws UsageError for a history that cannot be read. */
export const orderOf = async (
  { longestFirst: history }: CollectionValues,
  instances: readonly Instance[],
): Promise<readonly Instance[]> =>
  history === undefined
    ? instances
    : longestFirst(instances, await Array.fromAsync(readLines(history), lineSummaryOf));

/** Returns the record that is stored beside an output. */
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

function warnOfMissing(again: Again | null, name = '', instances: readonly Instance[]): void {
  const there = new Set(instances.map(({ instance_id: id }) => id));
  const missing = [...(again?.only.keys() ?? [])].filter((id) => !there.has(id));
  if (missing.length === 0) return;
  printStatus(
    `swefarm: ${missing.length} instances of ${name} are not in the dataset and are left out: ${missing.slice(0, 5).join(', ')}`,
  );
  if (missing.length === again?.only.size)
    throw new UsageError(`${name}: none of its instances is in the dataset`);
}

export const priceFileOf = (
  { farm }: { farm: ConfigValues },
  { prices }: ProducerConfig,
): PriceFile | null => (prices === null ? null : { path: prices, named: farm.prices !== undefined });

/** Returns the price of the run's model; null: unknown. Throws UsageError when the price is unknown and `--budget-cost` is set. */
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
