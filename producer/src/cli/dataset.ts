/** `swefarm dataset`: tools for files of rows, and the conversion of a dataset to verl's format. */
import { PROMPT_STYLES, writeVerlDataset } from '@swefarm/trajectories';
import { fetch, pictures } from './datasetfetch.ts';
import { DATASET_TOOLS } from './datasettools.ts';
import { verify } from './datasetverify.ts';
import { choice, command, commands, defaulted, flag, group, required, share, text } from './declare.ts';
import { DATASET, datasetOf } from './options.ts';
import { print, printStatus } from './terminal.ts';

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
    const showing = instances.filter(({ pictures: shown = [] }) => shown.length > 0).length;
    if (showing > 0)
      printStatus(
        `swefarm: ${showing} instances show pictures; these rows have their addresses, not the pictures`,
      );
    const { promptStyle: style, valShare, agentName, withGold: gold } = o;
    const written = await writeVerlDataset(instances, o.outputDir, { style, valShare, agentName, gold });
    await print(JSON.stringify(written));
  },
});

export const dataset = commands({ fetch, pictures, ...DATASET_TOOLS, verify, 'to-verl': toVerl });
