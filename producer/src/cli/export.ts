/** `swefarm export`: writes chosen rollouts in a format of formats/registry.ts. */
import { type ArtifactContent, softwareVersion, UsageError } from '@swefarm/shared';
import type { ExportFormat, ExportWriter, OutputLine } from '@swefarm/trajectories';
import {
  artifactOfLine,
  type Choice,
  chooseRollouts,
  EXPORT_FORMATS,
  exportedRollout,
  fetchChosen,
  type InstanceFields,
  openSource,
  type Preference,
  type ResultSource,
  readInstanceFields,
  readRecipe,
  type Shares,
} from '@swefarm/trajectories';
import { type Command, Option } from 'commander';
import { addChoiceOptions, filtersOf } from './choiceoptions.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { lazyFarm } from './farm.ts';
import { addFarmOptions, type Flags, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { say } from './terminal.ts';

export function addExport(program: Command): void {
  const names = Object.keys(EXPORT_FORMATS);
  const command = program
    .command('export')
    .argument('[results...]', 'output files of rollout, collect, eval or import, or ids of runs in Redis')
    .addOption(new Option('--format <format>', formatHelp()).choices(names).makeOptionMandatory())
    .addOption(new Option('--form <form>', 'which form of the format (default: its first one)'))
    .addOption(
      new Option('--out <path>', 'file or folder to write; - is standard output').makeOptionMandatory(),
    )
    .option('--recipe <file>', 'YAML file with parts of results and their shares, in place of results')
    .option('--dataset <file>', 'dataset of the rollouts: its licences and problems travel with them');
  addFarmOptions(addChoiceOptions(command)).action(async (results: string[], flags: Flags) => {
    process.exitCode = await runExport(results, flags);
  });
}

const formatHelp = (): string =>
  Object.entries(EXPORT_FORMATS)
    .map(
      ([name, { description, forms }]) =>
        `${name}: ${description}${forms.length > 1 ? ` (${forms.join(', ')})` : ''}`,
    )
    .join('; ');

async function runExport(results: readonly string[], flags: Flags): Promise<ExitCode> {
  const format = formatOf(flags);
  const path = String(flags.out);
  const stop = listenForStop();
  await using late = lazyFarm(() => producerConfig(flags));
  const read = (line: OutputLine) => artifactOfLine(line, late.farm);
  const options = { farm: late.farm, onWarning: (text: string) => say(`swefarm: not read: ${text}`) };
  const { names, shares } = await partsOf(results, flags);
  const sources = await Promise.all(names.map((name) => openSource(name, options)));
  const choice = await chooseRollouts(sources, {
    filters: filtersOf(flags),
    perInstance: flags.perInstance as number | undefined,
    prefer: flags.prefer as Preference,
    seed: flags.seed as number,
    dedup: flags.dedupPatches === true,
    maxTokens: flags.maxTokens as number | undefined,
    balance: flags.balance === true,
    shares,
    read,
  });
  requireSome(choice, sources, format, flags);
  const instances = await instancesOf(flags, choice);
  const request = {
    path,
    form: formOf(format, flags),
    samples: choice.samples,
    fingerprint: choice.fingerprint,
  };
  await using writer = await format.open(request);
  const work = { writer, sources, choice, instances, read, signal: stop.draining };
  return await writeChosen(work, path);
}

/** The sources, and with a recipe their shares. Throws UsageError for both or neither. */
async function partsOf(
  results: readonly string[],
  flags: Flags,
): Promise<{ names: readonly string[]; shares: Shares | undefined }> {
  if ((flags.recipe === undefined) === (results.length === 0)) {
    throw new UsageError('name output files or runs, or give --recipe FILE');
  }
  if (flags.recipe === undefined) return { names: results, shares: undefined };
  const { parts } = await readRecipe(String(flags.recipe));
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
  instances: ReadonlyMap<string, InstanceFields>;
  read: (line: OutputLine) => Promise<ArtifactContent | null>;
  signal: AbortSignal;
};

async function writeChosen(work: Work, path: string): Promise<ExitCode> {
  const { writer, sources, choice, instances, read, signal } = work;
  const exportedBy = softwareVersion();
  const lost = new Map<string, number>();
  const done = writer.written ?? new Set<string>();
  let written = done.size;
  let imported = 0;
  for await (const fetched of fetchChosen(sources, choice.chosen, done, read)) {
    if (signal.aborted) return EXIT.interrupted;
    const { line } = fetched;
    const instance = instances.get(line.instance_id) ?? null;
    const reason =
      'lost' in fetched
        ? fetched.lost
        : await writer.write(exportedRollout({ ...fetched, instance, exportedBy }));
    if (reason === null) {
      written += 1;
      if (line.imported) imported += 1;
    } else lost.set(reason, (lost.get(reason) ?? 0) + 1);
  }
  if (written === 0) {
    throw new UsageError(`nothing was exported: ${described(lost)}`, { code: 'nothing_exported' });
  }
  await writer.finish();
  report(choice, lost, { written, imported, path });
  return lost.size > 0 ? EXIT.someNotJudged : EXIT.allJudged;
}

/** An empty choice is an error: an empty file would look like data. */
function requireSome(
  { chosen, seen, dropped, samples }: Choice,
  sources: readonly ResultSource[],
  format: ExportFormat,
  flags: Flags,
): void {
  if (chosen.size === 0) {
    const names = sources.map(({ name }) => name).join(', ');
    const why = seen === 0 ? 'it holds no rollout' : described(dropped);
    throw new UsageError(`${names}: no rollout is chosen (${why}); loosen the filters`, {
      code: 'nothing_exported',
    });
  }
  if (format.oneEach && samples > 1) {
    throw new UsageError(
      `--format ${String(flags.format)} has one rollout for an instance, and some have ${samples}: add --per-instance 1`,
    );
  }
}

function report(
  choice: Choice,
  lost: ReadonlyMap<string, number>,
  { written, imported, path }: { written: number; imported: number; path: string },
): void {
  if (choice.dropped.size > 0) say(`left out: ${described(choice.dropped)}`);
  if (lost.size > 0) say(`not exported: ${described(lost)}`);
  const name = path === '-' ? 'standard output' : path;
  say(`${choice.seen} read, ${written} exported of ${choice.instances.size} instances: ${name}`);
  if (imported > 0) {
    say(`${imported} of them are imported (off-policy): ${((100 * imported) / written).toFixed(1)} %`);
  }
}

const described = (counts: ReadonlyMap<string, number>): string =>
  [...counts].map(([reason, count]) => `${count} ${reason}`).join(', ');

function formatOf(flags: Flags): ExportFormat {
  const format = EXPORT_FORMATS[String(flags.format)];
  if (!format) throw new UsageError(`--format ${String(flags.format)}: no such format`);
  if (flags.out === '-' && format.shape === 'folder') {
    throw new UsageError(`--format ${String(flags.format)} writes a folder: name one with --out`);
  }
  return format;
}

function formOf({ forms }: ExportFormat, flags: Flags): string {
  const form = flags.form === undefined ? (forms[0] ?? '') : String(flags.form);
  if (forms.includes(form)) return form;
  throw new UsageError(
    `--form ${form}: no form of --format ${String(flags.format)}, which has ${forms.join(', ')}`,
  );
}

const instancesOf = async (flags: Flags, { instances }: Choice): Promise<Map<string, InstanceFields>> =>
  flags.dataset === undefined ? new Map() : await readInstanceFields(String(flags.dataset), instances);
