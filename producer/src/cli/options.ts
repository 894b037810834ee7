/** Options that several commands share, made from the tables of configuration keys and run flags. */

import type { Dataset, DatasetFilters, RowOptions } from '@swefarm/datasets';
import { openPictureFolder } from '@swefarm/datasets';
import { NOT_FOR_OPEN_RUNS } from '@swefarm/gateway';
import { flagKey, RUN_FLAGS, type RunFlag } from '@swefarm/runs';
import {
  configOptions,
  DatasetFamily,
  loadConfig,
  type ProducerConfig,
  RUNTIMES,
  UsageError,
} from '@swefarm/shared';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { expandIds } from './ids.ts';
import { say } from './terminal.ts';

/** The flags that commander passes to an action. */
export type Flags = Readonly<Record<string, unknown>>;

/** Collects the values of an option that may be given several times. */
export const gather = (value: string, earlier: string[] | undefined): string[] => [...(earlier ?? []), value];

export function wholeNumber(value: string): number {
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError('expected a whole number.');
  return Number(value);
}

/** Options for Redis, artifacts and state: the configuration's keys, and the file that may hold them. */
export function addFarmOptions(command: Command): Command {
  command.addOption(new Option('--config <file>', 'YAML file with any of these keys').helpGroup('Farm:'));
  for (const { key, flag, doc, secret } of configOptions('producer')) {
    // Every user of the machine can read a command line: secrets belong in files and variables.
    if ((secret && key !== 'redis_url') || key.startsWith(GATEWAY) || key.startsWith(HUB)) continue;
    command.addOption(new Option(flag, doc).helpGroup('Farm:'));
  }
  return command;
}

/** Options of the worker that a command starts itself. @param more flags with help, for this command only */
export function addWorkerOptions(command: Command, ...more: [flag: string, help: string][]): Command {
  const worker = (flag: string, help: string): Option => new Option(flag, help).helpGroup('Worker:');
  command.addOption(worker('--runtime <runtime>', 'what runs containers').choices([...RUNTIMES]));
  for (const [flag, help] of more) command.addOption(worker(flag, help));
  return command.addOption(
    worker('--worker-command <command>', 'command that starts a worker; its words are split at blanks'),
  );
}

/** Prefix of the keys that only `serve` has. */
const GATEWAY = 'gateway_';
/** Prefix of the keys that only `dataset fetch` has. */
const HUB = 'hub_';

/** The hub's address, and the file that may hold its token. */
export function addHubOptions(command: Command): Command {
  command.addOption(new Option('--config <file>', 'YAML file with any of these keys').helpGroup('Hub:'));
  for (const { key, flag, doc, secret } of configOptions('producer')) {
    if (key.startsWith(HUB) && !secret) command.addOption(new Option(flag, doc).helpGroup('Hub:'));
  }
  return command;
}

/** Options of rollouts that callers request, and the sources of instances. */
export function addServeOptions(command: Command): Command {
  const dataset = (flag: string, help: string): Option => new Option(flag, help).helpGroup('Dataset:');
  command
    .addOption(dataset('--dataset <file>', 'instances that callers may name by their id alone'))
    .addOption(
      dataset('--health <file>', 'findings of swefarm health (default: health.jsonl in the state folder)'),
    )
    .addOption(
      new Option('--run-config <file>', 'YAML file with settings of runs; flags win over it').helpGroup(
        'Run:',
      ),
    )
    .addOption(
      new Option(
        '--api-key-env <variable>',
        'environment variable that holds the API key of the policy',
      ).helpGroup('Policy:'),
    );
  // Flags that `serve` refuses are parsed, so that the error can say why, but hidden in the help.
  for (const flag of RUN_FLAGS)
    command.addOption(optionOf(flag).hideHelp(flag.path.join('.') in NOT_FOR_OPEN_RUNS));
  return addGatewayOptions(addRowOptions(command));
}

function addGatewayOptions(command: Command): Command {
  for (const { key, flag, doc, secret } of configOptions('producer')) {
    if (key.startsWith(GATEWAY) && !secret) command.addOption(new Option(flag, doc).helpGroup('Gateway:'));
  }
  return command;
}

/** How rows are read that a command gets from its dataset, or from its callers. */
export function addRowOptions(command: Command): Command {
  const add = (flag: string, help: string): Option => new Option(flag, help).helpGroup('Dataset:');
  return command
    .addOption(
      add(
        '--family <family>',
        'naming scheme of images, and grader (default: guessed from the rows)',
      ).choices(DatasetFamily.options),
    )
    .addOption(
      add(
        '--verdict <rule>',
        'of SWE-rebench V2: the tests that pass are exactly those of the row, as its makers ask, or include them (default: equal)',
      ).choices(['equal', 'subset']),
    )
    .addOption(
      add(
        '--family-files <folder>',
        'files that the rows lack: run_scripts and dockerfiles of SWE-bench Pro',
      ),
    )
    .addOption(
      add(
        '--picture-files <folder>',
        'pictures of the issues, with their list pictures.jsonl; swefarm dataset pictures makes it',
      ),
    )
    .addOption(add('--skip-ungradable', 'leave out and count the rows that cannot be graded'));
}

export function addDatasetOptions(command: Command): Command {
  const add = (flag: string, help: string): Option => new Option(flag, help).helpGroup('Dataset:');
  command.addOption(
    add('--dataset <file>', 'dataset as JSON, JSONL (also .gz) or parquet').makeOptionMandatory(),
  );
  return addRowOptions(command)
    .addOption(
      add('--ids <ids>', 'only these instances: a,b,c, or @FILE with one id per line (repeatable)').argParser(
        gather,
      ),
    )
    .addOption(add('--repo <owner/name>', 'only this repository (repeatable)').argParser(gather))
    .addOption(add('--match <regex>', 'only instance ids that match'))
    .addOption(add('--max-tests <n>', 'only instances with at most n tests').argParser(wholeNumber))
    .addOption(add('--sample <n>', 'only n instances, drawn at random').argParser(wholeNumber))
    .addOption(
      add('--sample-seed <n>', 'seed of --sample: the same seed draws the same instances')
        .argParser(wholeNumber)
        .default(0),
    )
    .addOption(
      add('--first <n>', 'only the first n instances, after all other filters').argParser(wholeNumber),
    );
}

export function addRunOptions(command: Command): Command {
  const health = (flag: string, help: string): Option => new Option(flag, help).helpGroup('Dataset:');
  command
    .addOption(
      health('--health <file>', 'findings of swefarm health (default: health.jsonl in the state folder)'),
    )
    .addOption(health('--skip-broken', 'leave out instances that swefarm health found broken'));
  command.addOption(
    new Option('--run-config <file>', 'YAML file with settings of the run; flags win over it').helpGroup(
      'Run:',
    ),
  );
  for (const flag of RUN_FLAGS) command.addOption(optionOf(flag));
  return command
    .addOption(rawOption())
    .addOption(
      new Option(
        '--no-probe',
        'queue without trying the endpoints first: they come up later, or only workers reach them',
      ).helpGroup('Policy:'),
    )
    .addOption(
      new Option(
        '--api-key-env <variable>',
        'environment variable that holds the API key of the policy',
      ).helpGroup('Policy:'),
    )
    .addOption(
      new Option(
        '--patches <file>',
        'file with the patches for --agent patch: instance_id and model_patch',
      ).helpGroup('Agent:'),
    );
}

/** Only the probe reads it: it is not a setting of the run. */
const rawOption = (): Option =>
  new Option(
    '--accept-raw-logprobs',
    'with --require-tokens: accept log-probabilities from before sampling changes, because the trainer corrects for them',
  ).helpGroup('Policy:');

/** The sampling of the doctor's probe. */
export function addProbeOptions(command: Command): Command {
  for (const flag of RUN_FLAGS)
    if (flag.path[1] === 'sampling' || flag.path[1] === 'extra_body') command.addOption(optionOf(flag));
  return command.addOption(rawOption());
}

/** Those options of a run that matter when patches are only graded. */
export function addGradingOptions(command: Command): Command {
  for (const flag of RUN_FLAGS) {
    const [section, key] = flag.path;
    const graded = section === 'sandbox' || section === 'evaluation' || section === 'reward';
    if (graded && key !== undefined && !NOT_FOR_GRADING.has(key)) command.addOption(optionOf(flag));
  }
  return command;
}

/** Options of agents, and those that `eval` names as the harness does. */
const NOT_FOR_GRADING = new Set(['agent_network', 'activate', 'enabled', 'timeout']);

function optionOf(flag: RunFlag): Option {
  const help = `${flag.help}${flag.many ? ' (repeatable)' : ''}${shownDefault(flag)}`;
  const option = new Option(flag.flag, help).helpGroup(flag.group);
  if (flag.choices) option.choices(flag.choices);
  if (flag.many) option.argParser(gather);
  return option;
}

/** The value in the record when the flag is not given; commander must not set it, because a configuration file may. */
function shownDefault({ constant, default: value, path }: RunFlag): string {
  if (constant !== undefined || (typeof value !== 'number' && typeof value !== 'string')) return '';
  if (typeof value === 'string' && value.length > LONGEST_DEFAULT) return '';
  return ` (default: ${path.at(-1)?.endsWith('_bytes') ? `${Number(value) / 1024 ** 3}g` : value})`;
}

/** A longer default is described in the help text instead. */
const LONGEST_DEFAULT = 12;

/** The values of RUN_FLAGS among a command's flags. */
export const runFlags = (flags: Flags): Flags =>
  Object.fromEntries(RUN_FLAGS.map((flag) => [flagKey(flag), flags[flagKey(flag)]]));

/** The filtered dataset that a command names. Throws UsageError. */
export async function datasetOf(flags: Flags, signal?: AbortSignal): Promise<Dataset> {
  const filters: DatasetFilters = {
    ids:
      flags.ids === undefined ? undefined : (flags.ids as string[]).flatMap((ids) => expandIds(ids, '--ids')),
    repos: flags.repo as string[] | undefined,
    match: flags.match === undefined ? undefined : regularExpression(String(flags.match)),
    maxTests: flags.maxTests as number | undefined,
    sample:
      flags.sample === undefined
        ? undefined
        : { count: flags.sample as number, seed: (flags.sampleSeed as number | undefined) ?? 0 },
    first: flags.first as number | undefined,
  };
  // The readers of rows are much to load, for commands that read none.
  const { readDataset } = await import('@swefarm/datasets');
  const dataset = await readDataset(String(flags.dataset), {
    filters,
    ...rowOptions(flags),
    skipUngradable: flags.skipUngradable === true,
    ...(signal ? { signal } : {}),
  });
  for (const [reason, count] of dataset.ungradable)
    say(`left out ${count} of ${dataset.rows} rows: ${reason}`);
  return dataset;
}

/** How the rows of a command are read. */
export const rowOptions = (flags: Flags): RowOptions => ({
  family: flags.family as DatasetFamily | undefined,
  verdict: flags.verdict as RowOptions['verdict'],
  familyFiles: flags.familyFiles === undefined ? undefined : String(flags.familyFiles),
  pictures: flags.pictureFiles === undefined ? undefined : openPictureFolder(String(flags.pictureFiles)),
});

/** Throws UsageError naming `--match`. */
export function regularExpression(text: string): RegExp {
  try {
    return new RegExp(text);
  } catch (error) {
    throw new UsageError(`--match: ${(error as Error).message}`, { cause: error });
  }
}

export const producerConfig = (flags: Flags): ProducerConfig => loadConfig('producer', { flags });
