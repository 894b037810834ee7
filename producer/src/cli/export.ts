/** `swefarm export`: writes chosen rollouts in an export format (trajectories/src/formats/registry.ts). */
import { ExitStatus, softwareVersion, UsageError } from '@swefarm/shared';
import type { ExportFilters, ExportFormat, ExportWriter } from '@swefarm/trajectories';
import {
  type Choice,
  chooseRollouts,
  EXPORT_FORMATS,
  exportedRollout,
  fetchChosen,
  type InstanceFields,
  type LeftOut,
  type LineChoice,
  leftOutOf,
  NotExportable,
  openSource,
  PREFERENCES,
  type ResultSource,
  readInstanceFields,
  readRecipe,
  type Shares,
} from '@swefarm/trajectories';
import {
  choice,
  command,
  defaulted,
  flag,
  group,
  list,
  number,
  required,
  share,
  text,
  type Values,
  whole,
} from './declare.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { lazyFarm } from './farm.ts';
import { expandIds, FARM, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { printStatus } from './terminal.ts';

const CHOICE = group('Which rollouts:', {
  '--only-resolved': flag('only resolved rollouts'),
  '--min-reward <reward>': number('only rollouts with at least this reward', 'a number', Number.isFinite),
  '--trust <level>': choice('clean: only verdicts without a finding against them', ['clean']),
  '--with-failed': flag('also rollouts that infrastructure failed'),
  '--tag <tag>': list('only rollouts of this set (repeatable)'),
  '--run <id>': list('only rollouts of this run (repeatable)'),
  '--instances <ids>': list('only these instances: a,b,c, or @FILE with one id per line (repeatable)'),
  '--exit-status <status>': list('only rollouts that ended so (repeatable)'),
  '--mask-overlong': flag(
    'do not train on rollouts that a token limit cut: masked where the format has masks, else left out',
  ),
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
  '--split <side>': choice('one side of a division by instance', ['train', 'val']),
  '--val-share <share>': defaulted(share('share of instances, chosen by their ids, on the side val'), 0.05),
});

const exporting = {
  '--format <format>': required(choice(formatHelp(), Object.keys(EXPORT_FORMATS))),
  '--form <form>': text('which form of the format (default: its first one)'),
  '--lines <lines>': choice(
    'lines of agents that come as programs: the main one, or all that are trained on (default: all where the format can)',
    ['main', 'all'],
  ),
  '--out <path>': required(text('file or folder to write; - is standard output')),
  '--recipe <file>': text('YAML file with parts of results and their shares, in place of results'),
  '--dataset <file>': text('dataset of the rollouts: its licences and problem statements are exported too'),
  ...CHOICE,
  ...FARM,
};
type ExportValues = Values<typeof exporting>;

export const exportRollouts = command({
  arguments: {
    '[results...]': 'output files of rollout, collect, eval or import, or ids of runs in Redis',
  },
  options: exporting,
  example: 'swefarm export results.jsonl --format sft-messages --only-resolved --out train.jsonl',
  async run(o, { results }) {
    const format = formatOf(o);
    const lines = linesIn(format, o);
    const path = o.out;
    const stop = listenForStop();
    await using late = lazyFarm(() => producerConfig(o));
    const options = {
      farm: late.farm,
      onWarning: (text: string) => printStatus(`swefarm: not read: ${text}`),
    };
    const { names, shares } = await partsOf(results, o.recipe);
    const sources = await Promise.all(names.map((name) => openSource(name, options)));
    const chosen = await chooseRollouts(sources, {
      filters: { ...choiceFilters(o), withoutTruncated: o.maskOverlong && !format.masks },
      perInstance: o.perInstance,
      prefer: o.prefer,
      seed: o.seed,
      dedup: o.dedupPatches,
      maxTokens: o.maxTokens,
      lines,
      balance: o.balance,
      shares,
    });
    requireSome(chosen, sources, format, o.format);
    const instances =
      o.dataset === undefined ? new Map() : await readInstanceFields(o.dataset, chosen.instances);
    const request = {
      path,
      form: formOf(format, o),
      lines,
      samples: chosen.samples,
      maskOverlong: o.maskOverlong,
      fingerprint: `${chosen.fingerprint}${o.maskOverlong ? ' overlong' : ''}`,
    };
    await using writer = await format.open(request);
    const work = { writer, sources, choice: chosen, lines, instances, signal: stop.draining };
    return await writeChosen(work, path);
  },
});

function formatHelp(): string {
  const shown = Object.entries(EXPORT_FORMATS).map(
    ([name, { description, forms }]) =>
      `${name}: ${description}${forms.length > 1 ? ` (${forms.join(', ')})` : ''}`,
  );
  return shown.join('; ');
}

/** Returns the names of the sources, and the shares of a recipe. Throws UsageError unless exactly one of the two is given. */
async function partsOf(
  results: readonly string[],
  recipe: string | undefined,
): Promise<{ names: readonly string[]; shares: Shares | undefined }> {
  if ((recipe === undefined) === (results.length === 0)) {
    throw new UsageError('name output files or runs, or give --recipe FILE');
  }
  if (recipe === undefined) return { names: results, shares: undefined };
  const { parts } = readRecipe(recipe);
  const shares = {
    partOf: parts.flatMap(({ results: own }, part) => own.map(() => part)),
    shares: parts.map(({ share }) => share),
  };
  return { names: parts.flatMap(({ results: own }) => own), shares };
}

type Work = {
  writer: ExportWriter;
  sources: readonly ResultSource[];
  choice: Choice;
  lines: LineChoice;
  instances: ReadonlyMap<string, InstanceFields>;
  signal: AbortSignal;
};

async function writeChosen(work: Work, path: string): Promise<ExitCode> {
  const { writer, sources, choice, lines, instances, signal } = work;
  const exportedBy = softwareVersion();
  const lost = new Map<string, number>();
  const left = new Map<string, LeftOut>();
  const done = writer.written ?? new Set<string>();
  let written = done.size;
  let imported = 0;
  for await (const fetched of fetchChosen(sources, choice.chosen, done)) {
    if (signal.aborted) return EXIT.interrupted;
    const { line } = fetched;
    const instance = instances.get(line.instance_id) ?? null;
    try {
      if ('lost' in fetched) throw new NotExportable(fetched.lost);
      await writer.write(
        exportedRollout({ ...fetched, instance, exportedBy, branches: choice.branches.of(line.rollout_id) }),
      );
      written += 1;
      if (line.imported) imported += 1;
      if (fetched.content?.trajectory) addLeftOut(left, leftOutOf(fetched.content.trajectory, lines));
    } catch (error) {
      if (!(error instanceof NotExportable)) throw error;
      lost.set(error.message, (lost.get(error.message) ?? 0) + 1);
    }
  }
  if (written === 0) {
    throw new UsageError(`nothing was exported: ${described(lost)}`, { code: 'nothing_exported' });
  }
  await writer.finish();
  report(choice, lost, { written, imported, path });
  reportLines(left);
  return lost.size > 0 ? EXIT.someNotJudged : EXIT.allJudged;
}

/** Throws UsageError when no rollout is chosen (an empty file would look like data), or too many for the format. */
function requireSome(
  { chosen, seen, dropped, samples }: Choice,
  sources: readonly ResultSource[],
  format: ExportFormat,
  name: string,
): void {
  if (chosen.size === 0) {
    const names = sources.map(({ name }) => name).join(', ');
    const why = seen === 0 ? 'it has no rollout' : described(dropped);
    throw new UsageError(`${names}: no rollout is chosen (${why}); loosen the filters`, {
      code: 'nothing_exported',
    });
  }
  if (format.oneEach && samples > 1) {
    throw new UsageError(
      `--format ${name} has one rollout for an instance, and some have ${samples}: add --per-instance 1`,
    );
  }
}

function report(
  choice: Choice,
  lost: ReadonlyMap<string, number>,
  { written, imported, path }: { written: number; imported: number; path: string },
): void {
  if (choice.dropped.size > 0) printStatus(`left out: ${described(choice.dropped)}`);
  if (lost.size > 0) printStatus(`not exported: ${described(lost)}`);
  const name = path === '-' ? 'standard output' : path;
  printStatus(`${choice.seen} read, ${written} exported of ${choice.instances.size} instances: ${name}`);
  if (imported > 0) {
    printStatus(
      `${imported} of them are imported (off-policy): ${((100 * imported) / written).toFixed(1)} %`,
    );
  }
}

function addLeftOut(sums: Map<string, LeftOut>, counts: Readonly<Record<string, LeftOut>>): void {
  for (const [reason, { lines, turns, tokens }] of Object.entries(counts)) {
    const sum = sums.get(reason) ?? { lines: 0, turns: 0, tokens: 0 };
    sums.set(reason, { lines: sum.lines + lines, turns: sum.turns + turns, tokens: sum.tokens + tokens });
  }
}

function reportLines(left: ReadonlyMap<string, LeftOut>): void {
  for (const [reason, { lines, turns, tokens }] of left)
    printStatus(`lines left out (${reason}): ${lines}, with ${turns} turns and ${tokens} sampled tokens`);
}

const described = (counts: ReadonlyMap<string, number>): string =>
  [...counts].map(([reason, count]) => `${count} ${reason}`).join(', ');

function formatOf({ format: name, out }: ExportValues): ExportFormat {
  const format = EXPORT_FORMATS[name];
  if (!format) throw new UsageError(`--format ${name}: no such format`);
  if (out === '-' && format.shape === 'folder') {
    throw new UsageError(`--format ${name} writes a folder: name one with --out`);
  }
  return format;
}

function formOf({ forms }: ExportFormat, o: ExportValues): string {
  const form = o.form ?? forms[0] ?? '';
  if (forms.includes(form)) return form;
  throw new UsageError(`--form ${form}: no form of --format ${o.format}, which has ${forms.join(', ')}`);
}

function linesIn({ lines }: ExportFormat, o: ExportValues): LineChoice {
  const choice = o.lines ?? lines[0] ?? 'main';
  if (lines.includes(choice)) return choice;
  throw new UsageError(`--lines ${choice}: --format ${o.format} has ${lines.join(', ')}`);
}

/** Throws UsageError for an unknown exit status. */
function choiceFilters(o: Values<typeof CHOICE>): ExportFilters {
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
    split: o.split === undefined ? undefined : { side: o.split, valShare: o.valShare },
  };
}
