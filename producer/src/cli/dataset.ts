/** `swefarm dataset`: files of rows, and datasets of this farm in another trainer's format. */

import { DATASET_FORMATS } from '@swefarm/trajectories';
import { type Command, Option } from 'commander';
import { addDatasetFetch } from './datasetfetch.ts';
import { addDatasetPictures } from './datasetpictures.ts';
import { addDatasetTools } from './datasettools.ts';
import { addDatasetVerify } from './datasetverify.ts';
import { EXIT } from './exit.ts';
import { addDatasetOptions, datasetOf, type Flags } from './options.ts';
import { print, say } from './terminal.ts';

export function addDataset(program: Command): void {
  const dataset = program.command('dataset');
  addDatasetFetch(dataset);
  addDatasetPictures(dataset);
  addDatasetTools(dataset);
  addDatasetVerify(dataset);
  for (const [name, format] of Object.entries(DATASET_FORMATS)) {
    const command = dataset.command(`to-${name}`).description(format.description);
    const folder = new Option('--output-dir <folder>', 'folder for the files').makeOptionMandatory();
    for (const option of [folder, ...format.options()]) command.addOption(option.helpGroup('Output:'));
    addDatasetOptions(command).action(async (flags: Flags) => {
      const { instances } = await datasetOf(flags);
      const showing = instances.filter(({ pictures = [] }) => pictures.length > 0).length;
      if (showing > 0)
        say(`swefarm: ${showing} instances show pictures; these rows hold their addresses, no pictures`);
      await print(JSON.stringify(await format.write(instances, String(flags.outputDir), flags)));
      process.exitCode = EXIT.allJudged;
    });
  }
}
