/** `swefarm preds`: predictions of several files as one, and the check that sb-cli makes before it submits. */

import { describeProblems, readDataset } from '@swefarm/datasets';
import { UsageError } from '@swefarm/shared';
import { checkPredictions, mergePredictions } from '@swefarm/trajectories';
import type { Command } from 'commander';
import { EXIT } from './exit.ts';
import type { Flags } from './options.ts';
import { say } from './terminal.ts';

export function addPreds(program: Command): void {
  const preds = program.command('preds');
  preds
    .command('merge')
    .description('write several files of predictions as one; the first prediction of an instance counts')
    .argument('<files...>', 'predictions as JSON or JSON Lines')
    .requiredOption('--out <file>', 'file to write, as JSON Lines; - is standard output')
    .action(async (files: string[], flags: Flags) => {
      const { written, again } = await mergePredictions(files, String(flags.out));
      say(
        `${written} predictions: ${String(flags.out)}${again > 0 ? `; ${again} more of the same instances were left out` : ''}`,
      );
      process.exitCode = EXIT.allJudged;
    });
  preds
    .command('check')
    .description('check predictions as sb-cli does before it submits')
    .argument('<file>', 'predictions as JSON or JSON Lines')
    .option('--dataset <file>', 'also that every id is in this dataset')
    .action(async (file: string, flags: Flags) => {
      const dataset = flags.dataset === undefined ? null : await readDataset(String(flags.dataset));
      const { predictions, models, empty, problems } = await checkPredictions(file, dataset?.ids ?? null);
      if (problems.length > 0)
        throw new UsageError(describeProblems(file, problems, 'sb-cli would refuse it'));
      say(
        `${file}: ${predictions} predictions of ${models.join(', ')}, ${empty} empty; sb-cli can submit it`,
      );
      process.exitCode = EXIT.allJudged;
    });
}
