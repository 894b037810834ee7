/** `swefarm dataset fetch`: files of a dataset from a hub. */
import { dirname, join } from 'node:path';
import { type FetchRecord, fetchDataset, parseDatasetName, readGymDatasets } from '@swefarm/datasets';
import { UsageError } from '@swefarm/shared';
import type { Command } from 'commander';
import { EXIT } from './exit.ts';
import { addHubOptions, type Flags, gather, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, say } from './terminal.ts';

export function addDatasetFetch(dataset: Command): void {
  const command = dataset
    .command('fetch')
    .description(
      'download the files of a dataset from a hub; continues what was cut off, and checks every file',
    )
    .argument('[name]', 'OWNER/NAME or OWNER/NAME@REVISION, such as SWE-Gym/SWE-Gym')
    .option('--output-dir <folder>', 'where the files go (default: the name of the dataset)')
    .option(
      '--file <path>',
      'only this file, or those that match the glob (repeatable; default: rows and READMEs)',
      gather,
    )
    .option(
      '--gym-config <file>',
      'fetch the datasets that a configuration of NeMo Gym names, each to its jsonl_fpath',
    );
  addHubOptions(command).action(async (name: string | undefined, flags: Flags) => {
    const fetched = name === undefined ? await fetchForGym(flags) : [await fetchNamed(name, flags)];
    for (const record of fetched) await print(JSON.stringify(record));
  });
}

function askedHub(flags: Flags) {
  const { hub_url: url, hub_token: token } = producerConfig(flags);
  return { url, token };
}

async function fetchNamed(name: string, flags: Flags): Promise<FetchRecord> {
  if (flags.gymConfig !== undefined) throw new UsageError('give a name or --gym-config, not both');
  const dataset = parseDatasetName(name);
  return await fetchDataset({
    hub: askedHub(flags),
    dataset,
    folder: String(flags.outputDir ?? dataset.name.replace('/', '__')),
    files: (flags.file as string[] | undefined) ?? [],
    signal: listenForStop().draining,
    onNote: say,
  });
}

async function fetchForGym(flags: Flags): Promise<FetchRecord[]> {
  if (flags.gymConfig === undefined)
    throw new UsageError('name a dataset, or a configuration with --gym-config FILE');
  const { draining: signal } = listenForStop();
  const records: FetchRecord[] = [];
  for (const { name, path, source, why } of readGymDatasets(String(flags.gymConfig))) {
    if (source === null) {
      say(`${name}: not fetched: ${why}`);
      process.exitCode = EXIT.someNotJudged;
      continue;
    }
    const target = flags.outputDir === undefined ? path : join(String(flags.outputDir), path);
    const { file } = source;
    const folder = dirname(target);
    const dataset = parseDatasetName(source.repository);
    records.push(
      await fetchDataset({
        hub: askedHub(flags),
        dataset,
        folder,
        files: [file],
        targetOf: () => target,
        signal,
        onNote: say,
      }),
    );
  }
  return records;
}
