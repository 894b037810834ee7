/** Options that several commands share, made from the tables of configuration keys and run flags. */

import type { Dataset, DatasetFilters, RowOptions } from '@swefarm/datasets';
import { openPictureFolder } from '@swefarm/datasets';
import { NOT_FOR_OPEN_RUNS } from '@swefarm/gateway';
import { RUN_FLAGS, type RunFlag, type RunFlagValues } from '@swefarm/runs';
import {
  configOptions,
  DatasetFamily,
  environmentSecret,
  loadConfig,
  type ProducerConfig,
  RUNTIMES,
  type Secret,
  UsageError,
} from '@swefarm/shared';
import { Option } from 'commander';
import {
  type Bundle,
  choice,
  defaulted,
  flag,
  group,
  list,
  optionOf,
  required,
  text,
  type Values,
  whole,
} from './declare.ts';
import { expandIds } from './ids.ts';
import { say } from './terminal.ts';

/** Texts of configuration keys, by the names of their flags. */
export type ConfigValues = Readonly<Record<string, string | undefined>>;

const CONFIG_FILE = '--config <file>';
/** Prefix of the keys that only `serve` has, and of those that only `dataset fetch` has. */
const GATEWAY = 'gateway_';
const HUB = 'hub_';

function configKeys(heading: string, takes: (key: string, secret: boolean) => boolean): Option[] {
  return configOptions('producer')
    .filter(({ key, secret }) => takes(key, secret))
    .map((one) => new Option(one.flag, one.doc).helpGroup(heading));
}

function withFile(heading: string, takes: Parameters<typeof configKeys>[1]): Bundle<ConfigValues> {
  return {
    made: () => [
      new Option(CONFIG_FILE, 'YAML file with any of these keys').helpGroup(heading),
      ...configKeys(heading, takes),
    ],
  };
}

/** Options for Redis, artifacts and state: the configuration's keys, and the file that may hold them. */
export const FARM = {
  // Every user of the machine can read a command line: secrets belong in files and variables.
  farm: withFile(
    'Farm:',
    (key, secret) => (!secret || key === 'redis_url') && !key.startsWith(GATEWAY) && !key.startsWith(HUB),
  ),
};
export type FarmValues = Values<typeof FARM>;

/** The hub's address, and the file that may hold its token. */
export const HUB_OPTIONS = { hub: withFile('Hub:', (key, secret) => key.startsWith(HUB) && !secret) };

const GATEWAY_OPTIONS: Bundle<ConfigValues> = {
  made: () => configKeys('Gateway:', (key, secret) => key.startsWith(GATEWAY) && !secret),
};

/** Options of the worker that a command starts itself. */
export const WORKER_RUNTIME = group('Worker:', {
  '--runtime <runtime>': choice('what runs containers', RUNTIMES),
});
export const WORKER_COMMAND = group('Worker:', {
  '--worker-command <command>': text('command that starts a worker; its words are split at blanks'),
});

/** How rows are read that a command gets from its dataset, or from its callers. */
export const ROWS = group('Dataset:', {
  '--family <family>': choice(
    'naming scheme of images, and grader (default: guessed from the rows)',
    DatasetFamily.options,
  ),
  '--verdict <rule>': choice(
    'of SWE-rebench V2: the tests that pass are exactly those of the row, as its makers ask, or include them (default: equal)',
    ['equal', 'subset'],
  ),
  '--family-files <folder>': text('files that the rows lack: run_scripts and dockerfiles of SWE-bench Pro'),
  '--picture-files <folder>': text(
    'pictures of the issues, with their list pictures.jsonl; swefarm dataset pictures makes it',
  ),
  '--skip-ungradable': flag('leave out and count the rows that cannot be graded'),
});

/** Which rows of a file are taken. */
export const FILTERS = {
  '--ids <ids>': list('only these instances: a,b,c, or @FILE with one id per line (repeatable)'),
  '--repo <owner/name>': list('only this repository (repeatable)'),
  '--match <regex>': text('only instance ids that match'),
  '--max-tests <n>': whole('only instances with at most n tests'),
};

export const DATASET = {
  ...group('Dataset:', {
    '--dataset <file>': required(text('dataset as JSON, JSONL (also .gz) or parquet')),
  }),
  ...ROWS,
  ...group('Dataset:', {
    ...FILTERS,
    '--sample <n>': whole('only n instances, drawn at random'),
    '--sample-seed <n>': defaulted(whole('seed of --sample: the same seed draws the same instances'), 0),
    '--first <n>': whole('only the first n instances, after all other filters'),
  }),
};
export type DatasetValues = Values<typeof DATASET>;

const HEALTH = {
  '--health <file>': text('findings of swefarm health (default: health.jsonl in the state folder)'),
};
const RUN_CONFIG = (of: string) =>
  group('Run:', {
    '--run-config <file>': text(`YAML file with settings of ${of}; flags win over it`),
  });
const API_KEY = group('Policy:', {
  '--api-key-env <variable>': text('environment variable that holds the API key of the policy'),
});
/** Only the probe reads it: it is not a setting of the run. */
const RAW_LOGPROBS = group('Policy:', {
  '--accept-raw-logprobs': flag(
    'with --require-tokens: accept log-probabilities from before sampling changes, because the trainer corrects for them',
  ),
});

const runFlags = (
  takes: (flag: RunFlag) => boolean,
  hides: (flag: RunFlag) => boolean = () => false,
): Bundle<RunFlagValues> => ({
  made: () => RUN_FLAGS.filter(takes).map((one) => runOption(one).hideHelp(hides(one))),
});

export const RUN = {
  ...group('Dataset:', {
    ...HEALTH,
    '--skip-broken': flag('leave out instances that swefarm health found broken'),
  }),
  ...RUN_CONFIG('the run'),
  run: runFlags(() => true),
  ...RAW_LOGPROBS,
  ...group('Policy:', {
    '--no-probe': flag(
      'queue without trying the endpoints first: they come up later, or only workers reach them',
    ),
  }),
  ...API_KEY,
  ...group('Agent:', {
    '--patches <file>': text('file with the patches for --agent patch: instance_id and model_patch'),
  }),
};

/** Options of rollouts that callers request, and the sources of instances. */
export const SERVE = {
  ...group('Dataset:', {
    '--dataset <file>': text('instances that callers may name by their id alone'),
    ...HEALTH,
  }),
  ...RUN_CONFIG('runs'),
  ...API_KEY,
  // Flags that `serve` refuses are parsed, so that the error can say why, but hidden in the help.
  run: runFlags(
    () => true,
    ({ path }) => path.join('.') in NOT_FOR_OPEN_RUNS,
  ),
  ...ROWS,
  gateway: GATEWAY_OPTIONS,
};

/** The sampling of the doctor's probe. */
export const PROBE = {
  sampling: runFlags(({ path }) => path[1] === 'sampling' || path[1] === 'extra_body'),
  ...RAW_LOGPROBS,
};

/** Options of agents, and those that `eval` names as the harness does. */
const NOT_FOR_GRADING = new Set(['agent_network', 'activate', 'enabled', 'timeout']);
const GRADING_SECTIONS = new Set(['sandbox', 'evaluation', 'reward']);

/** Those options of a run that matter when patches are only graded. */
export const GRADING = {
  run: runFlags(
    ({ path: [section = '', key] }) =>
      GRADING_SECTIONS.has(section) && key !== undefined && !NOT_FOR_GRADING.has(key),
  ),
};

function runOption(one: RunFlag): Option {
  const help = `${one.help}${one.many ? ' (repeatable)' : ''}${shownDefault(one)}`;
  return optionOf(one.flag, {
    help,
    form: one.many ? 'list' : 'value',
    group: one.group,
    ...(one.choices && { choices: one.choices }),
  });
}

/** The value in the record when the flag is not given; commander must not set it, because a configuration file may. */
function shownDefault({ constant, default: value, path }: RunFlag): string {
  if (constant !== undefined || (typeof value !== 'number' && typeof value !== 'string')) return '';
  if (typeof value === 'string' && value.length > LONGEST_DEFAULT) return '';
  return ` (default: ${path.at(-1)?.endsWith('_bytes') ? `${Number(value) / 1024 ** 3}g` : value})`;
}

/** A longer default is described in the help text instead. */
const LONGEST_DEFAULT = 12;

/** The filtered dataset that a command names. Throws UsageError. */
export async function datasetOf(
  o: { dataset: string } & Values<typeof ROWS> & Partial<DatasetValues>,
  signal?: AbortSignal,
): Promise<Dataset> {
  const filters: DatasetFilters = {
    ...filtersOf(o),
    sample: o.sample === undefined ? undefined : { count: o.sample, seed: o.sampleSeed ?? 0 },
    first: o.first,
  };
  // The readers of rows are much to load, for commands that read none.
  const { readDataset } = await import('@swefarm/datasets');
  const dataset = await readDataset(o.dataset, {
    filters,
    ...rowOptions(o),
    skipUngradable: o.skipUngradable,
    ...(signal ? { signal } : {}),
  });
  for (const [reason, count] of dataset.ungradable)
    say(`left out ${count} of ${dataset.rows} rows: ${reason}`);
  return dataset;
}

/** Throws UsageError naming the option. */
export const filtersOf = ({ ids, repo, match, maxTests }: Partial<Values<typeof FILTERS>>) => ({
  ids: ids?.flatMap((one) => expandIds(one, '--ids')),
  repos: repo,
  match: match === undefined ? undefined : regularExpression(match),
  maxTests,
});

/** How the rows of a command are read. */
export const rowOptions = (o: Values<typeof ROWS>): RowOptions => ({
  family: o.family,
  verdict: o.verdict,
  familyFiles: o.familyFiles,
  pictures: o.pictureFiles === undefined ? undefined : openPictureFolder(o.pictureFiles),
});

function regularExpression(pattern: string): RegExp {
  try {
    return new RegExp(pattern);
  } catch (error) {
    throw new UsageError(`--match: ${(error as Error).message}`, { cause: error });
  }
}

export const producerConfig = ({ farm }: { farm: ConfigValues }): ProducerConfig =>
  loadConfig('producer', { flags: farm });

/** The secret in the variable of `--api-key-env`. Throws UsageError. */
export const apiKeyOf = (variable: string | undefined, usual: Secret | null = null): Secret | null =>
  variable === undefined ? usual : environmentSecret(variable, '--api-key-env');
