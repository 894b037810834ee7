/** `swefarm dataset pictures`: brings the pictures of a dataset's issues to a folder for `--picture-files`. */
import { fetchPictures } from '@swefarm/datasets';
import { command, required, text } from './declare.ts';
import { EXIT } from './exit.ts';
import { DATASET, datasetOf } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, say } from './terminal.ts';

export const pictures = command({
  description: "download the pictures that a dataset's issues show; continues what was cut off",
  options: {
    '--output-dir <folder>': required(text('where the pictures and their list go')),
    ...DATASET,
  },
  example: 'swefarm dataset pictures --dataset rows.jsonl --output-dir pictures',
  async run(o) {
    const { draining: signal } = listenForStop();
    const { instances } = await datasetOf(o, signal);
    const done = await fetchPictures({ instances, folder: o.outputDir, signal, onNote: say });
    await print(JSON.stringify(done));
    return done.missing.length === 0 ? EXIT.allJudged : EXIT.someNotJudged;
  },
});
