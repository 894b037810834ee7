/** Options that several commands share, made from the tables of configuration keys and run flags. */
import { readFileSync } from 'node:fs';
import { type Dataset, type DatasetFilters, openPictureFolder, type RowOptions } from '@swefarm/datasets';
import { NOT_FOR_OPEN_RUNS } from '@swefarm/gateway';
import { RUN_FLAGS, type RunFlag, type RunFlagValues } from '@swefarm/runs';
import {
  configOptions,
  DatasetFamily,
  environmentSecret,
  environmentValues,
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
import { printStatus } from './terminal.ts';

/** Values of configuration keys, by the names of their flags. */
export type ConfigValues = Readonly<Record<string, string | undefined>>;

/** Prefixes of the keys that only `serve` (gateway) or `dataset fetch` (hub) reads. */
const GATEWAY = 'gateway_';
const HUB = 'hub_';

const configKeys = (heading: string, takes: (key: string, secret: boolean) => boolean): Option[] =>
  configOptions('producer')
    .filter(({ key, secret }) => takes(key, secret))
    .map((one) => new Option(one.flag, one.doc).helpGroup(heading));

const withFile = (heading: string, takes: Parameters<typeof configKeys>[1]): Bundle<ConfigValues> => ({
  made: () => [
    new Option('--config <file>', 'YAML file with any of these keys').helpGroup(heading),
    ...configKeys(heading, takes),
  ],
});

export const FARM = {
  // Every user of the machine can read a command line, so of the secrets only `redis_url` has a flag.
  farm: withFile(
    'Farm:',
    (key, secret) => (!secret || key === 'redis_url') && !key.startsWith(GATEWAY) && !key.startsWith(HUB),
  ),
};
export type FarmValues = Values<typeof FARM>;

export const HUB_OPTIONS = { hub: withFile('Hub:', (key, secret) => key.startsWith(HUB) && !secret) };

export const AGENTS_OPTIONS = { farm: withFile('Farm:', (key) => key === 'agents_dir') };

const GATEWAY_OPTIONS: Bundle<ConfigValues> = {
  made: () => configKeys('Gateway:', (key, secret) => key.startsWith(GATEWAY) && !secret),
};

export const WORKER_RUNTIME = group('Worker:', {
  '--runtime <runtime>': choice('what runs containers', RUNTIMES),
});
export const WORKER_COMMAND = group('Worker:', {
  '--worker-command <command>': text('command that starts a worker; its words are split at blanks'),
});

/** Options for reading rows of datasets, and rows that callers of the gateway send. */
export const ROWS = group('Dataset:', {
  '--family <family>': choice(
    'naming scheme of images, and grader (default: guessed from the rows)',
    DatasetFamily.options,
  ),
  '--verdict <rule>': choice(
    'of SWE-rebench V2: the tests that pass are exactly those of the row, as its makers ask, or include them (default: equal)',
    ['equal', 'subset'],
  ),
  '--family-files <folder>': text(
    'files that the rows lack: run_scripts and dockerfiles of SWE-bench Pro, or Harbor tasks that the rows name',
  ),
  '--reward-key <key>': text(
    'key of the reward that counts in Harbor tasks with several rewards (default: reward)',
  ),
  '--task-env <variable>': list(
    'variable of this environment that Harbor tasks may read; the run stores the value (repeatable)',
  ),
  '--picture-files <folder>': text(
    'pictures of the issues, with their list pictures.jsonl; swefarm dataset pictures makes it',
  ),
  '--skip-ungradable': flag('leave out and count the rows that cannot be graded'),
});

export const FILTERS = {
  '--ids <ids>': list('only these instances: a,b,c, or @FILE with one id per line (repeatable)'),
  '--repo <owner/name>': list('only this repository (repeatable)'),
  '--match <regex>': text('only instance ids that match'),
  '--max-tests <n>': whole('only instances with at most n tests'),
};

export const DATASET = {
  ...group('Dataset:', {
    '--dataset <path>': required(
      text('dataset as JSON, JSONL (also .gz) or parquet, or a folder of Harbor tasks'),
    ),
  }),
  ...ROWS,
  ...group('Dataset:', {
    ...FILTERS,
    '--sample <n>': whole('only n instances, drawn at random'),
    '--sample-seed <n>': defaulted(whole('seed of --sample: the same seed draws the same instances'), 0),
    '--first <n>': whole('only the first n instances, after all other filters'),
  }),
};

const HEALTH = {
  '--health <file>': text('findings of swefarm health (default: health.jsonl in the state folder)'),
};
const RUN_CONFIG = (of: string) =>
  group('Run:', {
    '--run-config <file>': text(`YAML file with settings of ${of}; flags win over it`),
  });
const API_KEY = group('Policy:', {
  '--api-key-env <variable>': text('environment variable with the API key of the policy'),
});
/** Option of the endpoint check. It is not a setting of the run. */
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

/** All settings of a run, without options that are no settings. */
export const RUN_SETTINGS_FLAGS = { run: runFlags(() => true) };

export const RUN = {
  ...group('Dataset:', {
    ...HEALTH,
    '--skip-broken': flag('leave out instances that swefarm health found broken'),
  }),
  ...RUN_CONFIG('the run'),
  ...RUN_SETTINGS_FLAGS,
  ...RAW_LOGPROBS,
  ...group('Policy:', {
    '--no-probe': flag(
      'queue without trying the endpoints first, which start later or are reachable from workers only',
    ),
  }),
  ...API_KEY,
  ...group('Agent:', {
    '--patches <file>': text('file with the patches for --agent patch: instance_id and model_patch'),
  }),
};

export const SERVE = {
  ...group('Dataset:', {
    '--dataset <file>': text('instances that callers may name by their id alone'),
    ...HEALTH,
  }),
  ...RUN_CONFIG('runs'),
  ...API_KEY,
  // Flags that `serve` refuses are parsed for the error message, and hidden in the help.
  run: runFlags(
    () => true,
    ({ path }) => (path[0] ?? '') in NOT_FOR_OPEN_RUNS,
  ),
  ...ROWS,
  gateway: GATEWAY_OPTIONS,
};

export const PROBE = {
  sampling: runFlags(({ path }) => path[1] === 'sampling' || path[1] === 'extra_body'),
  ...RAW_LOGPROBS,
};

/** Settings of agents, `--no-eval`, and the timeout, which commands that only grade take with the harness's option `--timeout`. */
const NOT_FOR_GRADING = new Set(['agent_network', 'activate', 'enabled', 'timeout']);
const GRADING_SECTIONS = new Set(['sandbox', 'evaluation', 'reward']);

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

/** Returns the default as help text. Commander does not know the default, because a configuration file may set the value. */
function shownDefault({ constant, default: value, path }: RunFlag): string {
  if (constant !== undefined || (typeof value !== 'number' && typeof value !== 'string')) return '';
  if (typeof value === 'string' && value.length > LONGEST_DEFAULT) return '';
  return ` (default: ${path.at(-1)?.endsWith('_bytes') ? `${Number(value) / 1024 ** 3}g` : value})`;
}

const LONGEST_DEFAULT = 12;
const MOST_WARNINGS = 20;

/** Reads and filters the dataset that a command names. Throws UsageError. */
export async function datasetOf(
  o: { dataset: string } & Values<typeof ROWS> & Partial<Values<typeof DATASET>>,
  signal?: AbortSignal,
): Promise<Dataset> {
  const filters: DatasetFilters = {
    ...filtersOf(o),
    sample: o.sample === undefined ? undefined : { count: o.sample, seed: o.sampleSeed ?? 0 },
    first: o.first,
  };
  // A static import would load the readers of rows for other commands too.
  const { readDataset } = await import('@swefarm/datasets');
  const dataset = await readDataset(o.dataset, {
    filters,
    ...rowOptions(o),
    skipUngradable: o.skipUngradable,
    ...(signal ? { signal } : {}),
  });
  for (const [reason, count] of dataset.ungradable)
    printStatus(`left out ${count} of ${dataset.rows} rows: ${reason}`);
  const { warnings } = dataset;
  for (const warning of warnings.slice(0, MOST_WARNINGS)) printStatus(`swefarm: ${warning}`);
  if (warnings.length > MOST_WARNINGS)
    printStatus(`swefarm: ${warnings.length - MOST_WARNINGS} more warnings are not shown`);
  return dataset;
}

/** Parses the filters. Throws UsageError that names the option. */
export const filtersOf = ({ ids, repo, match, maxTests }: Partial<Values<typeof FILTERS>>) => ({
  ids: ids?.flatMap((one) => expandIds(one, '--ids')),
  repos: repo,
  match: match === undefined ? undefined : regularExpression(match),
  maxTests,
});

export const rowOptions = (o: Values<typeof ROWS>): RowOptions => ({
  family: o.family,
  verdict: o.verdict,
  familyFiles: o.familyFiles,
  rewardKey: o.rewardKey,
  taskEnv: environmentValues(o.taskEnv ?? []),
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

/** Returns the secret in the variable that `--api-key-env` names; `usual` without the option. Throws UsageError. */
export const apiKeyOf = (variable: string | undefined, usual: Secret | null = null): Secret | null =>
  variable === undefined ? usual : environmentSecret(variable, '--api-key-env');

/** Returns the ids of `a,b,c` or of `@FILE`. Throws UsageError for a file that cannot be read. */
export function expandIds(given: string, flag: string): string[] {
  if (!given.startsWith('@')) return given.split(',').flatMap((id) => id.trim() || []);
  try {
    return readFileSync(given.slice(1), 'utf8')
      .split(/[\s,]+/)
      .filter(Boolean);
  } catch (error) {
    throw new UsageError(`${flag} ${given}: ${(error as Error).message}`, { cause: error });
  }
}
