/** `swefarm report`: prints or writes the profile of output files and of runs that are still in Redis, counted as one. */
import { basename, resolve } from 'node:path';
import { replaceFile, startedRollouts } from '@swefarm/shared';
import {
  analyse,
  costTable,
  cutTables,
  distributionTables,
  type FullReport,
  inFolder,
  type ProfileReport,
  profileOf,
  renderFigures,
  renderMarkdown,
  renderPage,
  renderReport,
  scalingTable,
} from '@swefarm/trajectories';
import { InvalidArgumentError } from 'commander';
import { countAll } from './counted.ts';
import { choice, command, defaulted, flag, parsed, text, texts, whole } from './declare.ts';
import { FARM, type FarmValues } from './options.ts';
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
  const { rollouts, records, known, untilResolved } = await countAll(names, o);
  if (untilResolved.length > 0)
    printStatus(
      `swefarm: ${untilResolved.join(', ')}: --until-resolved ends an instance at a success, so the accuracy estimates nothing; pass@k, best@k and intervals are left out`,
    );
  const scores = o.scores === undefined ? null : await scoresOf(o.scores);
  const facts = rollouts.map((fact) => ({
    ...fact,
    score: scores?.get(fact.rollout_id)?.score ?? null,
  }));
  const [first] = records;
  // The group size is unknown for several runs: shards may have rollouts of the same instance.
  const size = known && records.length === 1 ? first?.group_size : undefined;
  // Groups that end at a success bias pass@k and the mean accuracy of groups upwards.
  const biased = untilResolved.length > 0 ? { pass_at: {}, pass_at_1_avg_of_k: null } : {};
  const profile = { ...profileOf(facts, size), ...biased };
  // Groups without a result also count, except instances that a run with `until` has not drawn.
  const draws = records.some(({ until }) => until !== null);
  const total = size === undefined || draws ? 0 : (first?.dataset.instances ?? 0);
  const groups = { ...profile.groups, total: Math.max(total, profile.groups.total) };
  const expected = known && !draws ? records.reduce((sum, run) => sum + startedRollouts(run), 0) : null;
  const most = Object.keys(profile.pass_at).length;
  const ks = untilResolved.length > 0 ? [] : (o.k ?? powersOfTwo(most));
  const analysis = analyse(facts, ks, { resamples: o.resamples, seed: o.seed });
  if (untilResolved.length > 0) analysis.accuracy_interval = null;
  return { report: { expected, ...profile, groups, analysis }, ks };
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
