/** `swefarm dataset`: files of rows, and datasets of this farm in another trainer's format. */
import { DATASET_FORMATS, type DatasetFormat } from '@swefarm/trajectories';
import { fetch } from './datasetfetch.ts';
import { pictures } from './datasetpictures.ts';
import { DATASET_TOOLS } from './datasettools.ts';
import { verify } from './datasetverify.ts';
import { type Bundle, command, commands, group, required, text } from './declare.ts';
import { DATASET, datasetOf } from './options.ts';
import { print, say } from './terminal.ts';

/** Options that the format declares itself. */
const ownOptions = (format: DatasetFormat): Bundle<Readonly<Record<string, unknown>>> => ({
  made: () => format.options().map((option) => option.helpGroup('Output:')),
});

const convertTo = (name: string, format: DatasetFormat) =>
  command({
    description: format.description,
    options: {
      ...group('Output:', { '--output-dir <folder>': required(text('folder for the files')) }),
      format: ownOptions(format),
      ...DATASET,
    },
    example: ['swefarm', 'dataset', `to-${name}`, '--dataset rows.jsonl --output-dir', name].join(' '),
    async run(o) {
      const { instances } = await datasetOf(o);
      const showing = instances.filter(({ pictures: shown = [] }) => shown.length > 0).length;
      if (showing > 0)
        say(`swefarm: ${showing} instances show pictures; these rows hold their addresses, no pictures`);
      await print(JSON.stringify(await format.write(instances, o.outputDir, o.format)));
    },
  });

const FORMATS = Object.entries(DATASET_FORMATS).map(
  ([name, format]) => [`to-${name}`, convertTo(name, format)] as const,
);

export const dataset = commands({
  fetch,
  pictures,
  ...DATASET_TOOLS,
  verify,
  ...Object.fromEntries(FORMATS),
});
