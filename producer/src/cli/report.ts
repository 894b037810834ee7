/** `swefarm report`: prints or writes the profile of output files and of runs that are still in Redis, counted as one. */
import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import {
  describeUnreadable,
  openFarm,
  type RunRecord,
  replaceFile,
  startedRollouts,
  UsageError,
} from '@swefarm/shared';
import type { LineFact, PriceFile } from '@swefarm/trajectories';
import {
  analyse,
  costTable,
  countOutput,
  countRun,
  cutTables,
  distributionTables,
  type FullReport,
  inFolder,
  type ProfileReport,
  profileOf,
  Replacements,
  renderMarkdown,
  renderPage,
  renderReport,
  renderTable,
  scalingTable,
  type Table,
} from '@swefarm/trajectories';
import { InvalidArgumentError } from 'commander';
import { priceFileOf } from './collection.ts';
import { choice, command, defaulted, flag, parsed, text, texts, whole } from './declare.ts';
import { FARM, type FarmValues, producerConfig } from './options.ts';
import { scoresOf } from './select.ts';
import { print, printStatus } from './terminal.ts';

export const report = command({
  arguments: {
    '<output...>': 'output files (several: shards, counted as one), or ids of runs in Redis',
  },
  options: {
    '--k <list>': parsed('values of k for pass@k, such as 1,2,4 (default: powers of two)', numbers),
    '--format <format>': choice(
      'table (the default on a terminal), json (in a pipe), markdown, or html: one page with plots',
      ['table', 'json', 'markdown', 'html'],
    ),
    '--json': flag('the same as --format json'),
    '--output <file>': text('write the report into this file'),
    '--scores <file...>': texts('files of swefarm score: adds best@k and the gap to the oracle'),
    '--resamples <n>': defaulted(whole('resamples of the bootstrap for 95 % intervals'), 1000),
    '--seed <n>': defaulted(whole('seed of the bootstrap'), 0),
    ...FARM,
  },
  example: 'swefarm report results.jsonl --format markdown',
  async run(o, { output: names }) {
    const { report: full, ks } = await reportOf(names, o);
    const usual = process.stdout.isTTY && o.output === undefined ? 'table' : 'json';
    const rendered = render(full, ks, names, o.json ? 'json' : (o.format ?? usual));
    const { output: target } = o;
    if (target === undefined) await print(rendered);
    else await inFolder(target, () => replaceFile(resolve(target), `${rendered.trimEnd()}\n`));
  },
});

function render(report: FullReport, ks: readonly number[], names: readonly string[], format: string): string {
  const title = `Report of ${names.map((name) => basename(name)).join(', ')}`;
  switch (format) {
    case 'markdown':
      return renderMarkdown(report, title);
    case 'html':
      return renderPage(report, title);
    case 'table': {
      const { analysis } = report;
      const tables = [
        scalingTable(analysis.scaling),
        ...(analysis.costs ? [costTable(analysis.costs)] : []),
        ...cutTables(analysis),
        ...distributionTables(analysis),
      ];
      return [renderReport(report, ks), ...tables.map(renderFigures)].join('\n\n');
    }
    default: {
      const { analysis, ...profile } = report;
      return JSON.stringify({ ...profile, ...analysis, pass_at: chosen(report, ks) });
    }
  }
}

function renderFigures({ title, columns, rows }: Table): string {
  const aligned = columns.map((name, at) => ({ name, align: at === 0 ? 'left' : 'right' }) as const);
  return `${title}\n${renderTable(aligned, rows)}`;
}

type ReportValues = FarmValues & {
  k: number[] | undefined;
  scores: string[] | undefined;
  resamples: number;
  seed: number;
};

async function reportOf(
  names: readonly string[],
  o: ReportValues,
): Promise<{ report: FullReport; ks: number[] }> {
  const rollouts = new Map<string, LineFact>();
  const records = new Map<string, RunRecord>();
  const prices = priceFileOf(o, producerConfig(o));
  let known = true;
  let untilResolved = false;
  for (const name of names) {
    const counted = existsSync(name) ? await countOutput(name, prices) : await fromFarm(name, o, prices);
    if (counted.untilResolved) {
      untilResolved = true;
      printStatus(
        `swefarm: ${name}: --until-resolved ends an instance at a success, so the accuracy estimates nothing; pass@k, best@k and intervals are left out`,
      );
    }
    for (const [id, fact] of counted.rollouts) rollouts.set(id, fact);
    if (counted.record) records.set(counted.record.run_id, counted.record);
    else known = false;
    for (const entry of counted.unreadable) printStatus(`swefarm: not counted: ${describeUnreadable(entry)}`);
  }
  const replacements = new Replacements();
  for (const fact of rollouts.values()) replacements.note(fact);
  for (const id of [...rollouts.keys()]) if (replacements.isOutdated(id)) rollouts.delete(id);
  const scores = o.scores === undefined ? null : await scoresOf(o.scores);
  const facts = [...rollouts.values()].map((fact) => ({
    ...fact,
    score: scores?.get(fact.rollout_id)?.score ?? null,
  }));
  const runs = [...records.values()];
  const [first] = runs;
  // The group size is unknown for several runs: shards may have rollouts of the same instance.
  const size = known && runs.length === 1 ? first?.group_size : undefined;
  // Groups that end at a success bias pass@k and the mean accuracy of groups upwards.
  const biased = untilResolved ? { pass_at: {}, pass_at_1_avg_of_k: null } : {};
  const profile = { ...profileOf(facts, size), ...biased };
  // Groups without a result also count, except instances that a run with `until` has not drawn.
  const draws = runs.some(({ until }) => until !== null);
  const total = size === undefined || draws ? 0 : (first?.dataset.instances ?? 0);
  const groups = { ...profile.groups, total: Math.max(total, profile.groups.total) };
  const expected = known && !draws ? runs.reduce((sum, run) => sum + startedRollouts(run), 0) : null;
  const most = Object.keys(profile.pass_at).length;
  const ks = untilResolved ? [] : (o.k ?? powersOfTwo(most));
  const analysis = analyse(facts, ks, { resamples: o.resamples, seed: o.seed });
  if (untilResolved) analysis.accuracy_interval = null;
  return { report: { expected, ...profile, groups, analysis }, ks };
}

async function fromFarm(runId: string, o: FarmValues, prices: PriceFile | null) {
  const config = producerConfig(o);
  if (config.redis_url === null)
    throw new UsageError(`${runId}: no such file; for a run of a farm add its --redis-url`);
  await using farm = await openFarm(config, 'producer');
  return await countRun(farm, runId, prices);
}

/** Returns pass@k for each k; null if no group has enough judged rollouts. */
const chosen = (report: ProfileReport, ks: readonly number[]): Record<string, number | null> =>
  Object.fromEntries(ks.map((k) => [String(k), report.pass_at[String(k)] ?? null]));

const powersOfTwo = (most: number): number[] =>
  Array.from({ length: Math.floor(Math.log2(Math.max(1, most))) + 1 }, (_, power) => 2 ** power);

function numbers(text: string): number[] {
  const ks = text.split(',').map(Number);
  if (ks.some((k) => !Number.isInteger(k) || k < 1))
    throw new InvalidArgumentError('expected numbers: 1,2,4.');
  return ks;
}
