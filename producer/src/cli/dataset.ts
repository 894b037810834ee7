/** `swefarm dataset`: downloads, tools for files of rows, and conversions of a dataset for verl and Harbor. */
import { dirname, join } from 'node:path';
import {
  type FetchRecord,
  fetchDataset,
  fetchPictures,
  parseDatasetName,
  readGymDatasets,
} from '@swefarm/datasets';
import { EvaluationConfig, type Instance, UsageError } from '@swefarm/shared';
import { PROMPT_STYLES, writeHarborTasks, writeVerlDataset } from '@swefarm/trajectories';
import { DATASET_TOOLS } from './datasettools.ts';
import { verify } from './datasetverify.ts';
import { choice, command, commands, defaulted, flag, group, list, required, share, text } from './declare.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { type ConfigValues, DATASET, datasetOf, HUB_OPTIONS, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, printStatus } from './terminal.ts';

type FetchValues = {
  hub: ConfigValues;
  outputDir: string | undefined;
  file: string[] | undefined;
  gymConfig: string | undefined;
};

const fetch = command({
  description:
    'download the files of a dataset from a hub; continues what was cut off, and checks every file',
  arguments: { '[name]': 'OWNER/NAME or OWNER/NAME@REVISION, such as SWE-Gym/SWE-Gym' },
  options: {
    '--output-dir <folder>': text('where the files go (default: the name of the dataset)'),
    '--file <path>': list(
      'only this file, or those that match the glob (repeatable; default: rows and READMEs)',
    ),
    '--gym-config <file>': text(
      'fetch the datasets that a configuration of NeMo Gym names, each to its jsonl_fpath',
    ),
    ...HUB_OPTIONS,
  },
  example: 'swefarm dataset fetch SWE-Gym/SWE-Gym --output-dir rows',
  run: (o, { name }) => (name === undefined ? fetchForGym(o) : fetchNamed(name, o)),
});

function fetchInto(
  { hub }: FetchValues,
  signal: AbortSignal,
  target: Pick<Parameters<typeof fetchDataset>[0], 'dataset' | 'folder' | 'files' | 'targetOf'>,
): Promise<FetchRecord> {
  const { hub_url: url, hub_token: token } = producerConfig({ farm: hub });
  return fetchDataset({ ...target, hub: { url, token }, signal, onNote: printStatus });
}

async function fetchNamed(name: string, o: FetchValues): Promise<void> {
  if (o.gymConfig !== undefined) throw new UsageError('give a name or --gym-config, not both');
  const dataset = parseDatasetName(name);
  const folder = o.outputDir ?? dataset.name.replace('/', '__');
  const { draining } = listenForStop();
  await print(JSON.stringify(await fetchInto(o, draining, { dataset, folder, files: o.file ?? [] })));
}

async function fetchForGym(o: FetchValues): Promise<ExitCode> {
  if (o.gymConfig === undefined)
    throw new UsageError('name a dataset, or a configuration with --gym-config FILE');
  const { draining } = listenForStop();
  const records: FetchRecord[] = [];
  let code: ExitCode = EXIT.allJudged;
  for (const { name, path, source, why } of readGymDatasets(o.gymConfig)) {
    if (source === null) {
      printStatus(`${name}: not fetched: ${why}`);
      code = EXIT.someNotJudged;
      continue;
    }
    const target = o.outputDir === undefined ? path : join(o.outputDir, path);
    const dataset = parseDatasetName(source.repository);
    const files = { files: [source.file], folder: dirname(target), targetOf: () => target };
    records.push(await fetchInto(o, draining, { dataset, ...files }));
  }
  for (const record of records) await print(JSON.stringify(record));
  return code;
}

const pictures = command({
  description: "download the pictures that a dataset's issues show; continues what was cut off",
  options: {
    '--output-dir <folder>': required(text('where the pictures and their list go')),
    ...DATASET,
  },
  example: 'swefarm dataset pictures --dataset rows.jsonl --output-dir pictures',
  async run(o) {
    const { draining: signal } = listenForStop();
    const { instances } = await datasetOf(o, signal);
    const done = await fetchPictures({ instances, folder: o.outputDir, signal, onNote: printStatus });
    await print(JSON.stringify(done));
    return done.missing.length === 0 ? EXIT.allJudged : EXIT.someNotJudged;
  },
});

const toVerl = command({
  description: 'write train.parquet and val.parquet for verl',
  options: {
    ...group('Output:', {
      '--output-dir <folder>': required(text('folder for the files')),
      '--prompt-style <style>': defaulted(
        choice('work with tools, or answer with a patch', PROMPT_STYLES),
        'tools',
      ),
      '--val-share <share>': defaulted(
        share('share of instances, chosen by their ids, that go to val'),
        0.05,
      ),
      '--agent-name <name>': text("verl's agent loop (default: tool_agent; single_turn_agent)"),
      '--with-gold': flag('put the gold patch into the rows'),
    }),
    ...DATASET,
  },
  example: 'swefarm dataset to-verl --dataset rows.jsonl --output-dir verl',
  async run(o) {
    const { instances } = await datasetOf(o);
    notePictures(instances);
    const { promptStyle: style, valShare, agentName, withGold: gold } = o;
    const written = await writeVerlDataset(instances, o.outputDir, { style, valShare, agentName, gold });
    await print(JSON.stringify(written));
  },
});

const toHarbor = command({
  description: 'write a task of Harbor for each instance',
  options: {
    ...group('Output:', {
      '--output-dir <folder>': required(text('new folder for the tasks')),
      '--network <net>': defaulted(
        choice('network of agent and tests; Harbor needs a sidecar image for none', ['none', 'public']),
        'none',
      ),
      '--grader <name>': defaulted(
        choice(
          'whose rules decide; auto: those of the dataset family',
          EvaluationConfig.shape.grader.unwrap().options,
        ),
        'auto',
      ),
    }),
    ...DATASET,
  },
  example: 'swefarm dataset to-harbor --dataset rows.jsonl --output-dir tasks',
  async run(o) {
    const { instances } = await datasetOf(o);
    notePictures(instances);
    const { network, grader, skipUngradable: skipRefused } = o;
    const written = await writeHarborTasks(instances, o.outputDir, { network, grader, skipRefused });
    for (const [reason, count] of Object.entries(written.left_out))
      printStatus(`left out ${count} of ${instances.length} instances: ${reason}`);
    await print(JSON.stringify(written));
  },
});

function notePictures(instances: readonly Instance[]): void {
  const showing = instances.filter(({ pictures: shown = [] }) => shown.length > 0).length;
  if (showing === 0) return;
  printStatus(
    `swefarm: ${showing} instances show pictures; the output has their addresses, not the pictures`,
  );
}

export const dataset = commands({
  fetch,
  pictures,
  ...DATASET_TOOLS,
  verify,
  'to-verl': toVerl,
  'to-harbor': toHarbor,
});
