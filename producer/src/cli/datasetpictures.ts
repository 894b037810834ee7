/** `swefarm dataset pictures`: brings the pictures of a dataset's issues to a folder for `--picture-files`. */

import { fetchPictures } from '@swefarm/datasets';
import type { Command } from 'commander';
import { EXIT } from './exit.ts';
import { addDatasetOptions, datasetOf, type Flags } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, say } from './terminal.ts';

export function addDatasetPictures(dataset: Command): void {
  const command = dataset
    .command('pictures')
    .description("download the pictures that a dataset's issues show; continues what was cut off")
    .requiredOption('--output-dir <folder>', 'where the pictures and their list go');
  addDatasetOptions(command).action(async (flags: Flags) => {
    const { draining: signal } = listenForStop();
    const { instances } = await datasetOf(flags, signal);
    const done = await fetchPictures({ instances, folder: String(flags.outputDir), signal, onNote: say });
    await print(JSON.stringify(done));
    process.exitCode = done.missing.length === 0 ? EXIT.allJudged : EXIT.someNotJudged;
  });
}
