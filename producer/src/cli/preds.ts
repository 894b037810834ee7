/** `swefarm preds`: merges files of predictions, and checks predictions as sb-cli does before it submits. */
import { describeProblems, readDataset } from '@swefarm/datasets';
import { UsageError } from '@swefarm/shared';
import { checkPredictions, mergePredictions } from '@swefarm/trajectories';
import { command, commands, required, text } from './declare.ts';
import { printStatus } from './terminal.ts';

const FORMAT = 'predictions as JSON or JSON Lines';

const merge = command({
  description: 'write several files of predictions as one; the first prediction of an instance counts',
  arguments: { '<files...>': FORMAT },
  options: { '--out <file>': required(text('file to write, as JSON Lines; - is standard output')) },
  example: 'swefarm preds merge first.jsonl second.jsonl --out preds.jsonl',
  async run({ out }, { files }) {
    const { written, again } = await mergePredictions(files, out);
    printStatus(
      `${written} predictions: ${out}${again > 0 ? `; ${again} more of the same instances were left out` : ''}`,
    );
  },
});

const check = command({
  description: 'check predictions as sb-cli does before it submits',
  arguments: { '<file>': FORMAT },
  options: { '--dataset <file>': text('also that every id is in this dataset') },
  example: 'swefarm preds check preds.jsonl --dataset rows.jsonl',
  async run(o, { file }) {
    const dataset = o.dataset === undefined ? null : await readDataset(o.dataset);
    const { predictions, models, empty, problems } = await checkPredictions(file, dataset?.ids ?? null);
    if (problems.length > 0) throw new UsageError(describeProblems(file, problems, 'sb-cli would refuse it'));
    printStatus(
      `${file}: ${predictions} predictions of ${models.join(', ')}, ${empty} empty; sb-cli can submit it`,
    );
  },
});

export const preds = commands({ merge, check });
