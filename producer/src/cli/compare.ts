/** `swefarm compare`: compares two outputs or runs with paired statistics. */
import { basename, resolve } from 'node:path';
import { replaceFile, UsageError } from '@swefarm/shared';
import {
  compare as compareSides,
  comparisonTables,
  inFolder,
  markdownOf,
  renderFigures,
} from '@swefarm/trajectories';
import { countAll } from './counted.ts';
import { choice, command, defaulted, flag, text, whole } from './declare.ts';
import { FARM, type FarmValues } from './options.ts';
import { print } from './terminal.ts';

export const compare = command({
  arguments: {
    '<output>': 'output file or id of a run in Redis: A, the baseline',
    '<other>': 'output file or id of a run in Redis: B, which is compared with A',
  },
  options: {
    '--format <format>': choice('table (the default on a terminal), json (in a pipe), or markdown', [
      'table',
      'json',
      'markdown',
    ]),
    '--json': flag('the same as --format json'),
    '--output <file>': text('write the comparison into this file'),
    '--resamples <n>': defaulted(whole('resamples of the bootstrap for 95 % intervals'), 1000),
    '--seed <n>': defaulted(whole('seed of the bootstrap'), 0),
    ...FARM,
  },
  example: 'swefarm compare before.jsonl after.jsonl --format markdown',
  async run(o, { output: first, other: second }) {
    const options = { resamples: Math.max(1, o.resamples), seed: o.seed };
    const comparison = compareSides(await sideOf(first, o), await sideOf(second, o), options);
    if (comparison.instances === 0)
      throw new UsageError(
        `${first} and ${second}: no instance has verdicts in both; compare outputs of the same dataset`,
      );
    const usual = process.stdout.isTTY && o.output === undefined ? 'table' : 'json';
    const format = o.json ? 'json' : (o.format ?? usual);
    const rendered = rendering(comparison, format, `${basename(second)} compared with ${basename(first)}`);
    if (o.output === undefined) await print(rendered);
    else {
      const { output: target } = o;
      await inFolder(target, () => replaceFile(resolve(target), `${rendered.trimEnd()}\n`));
    }
  },
});

async function sideOf(name: string, o: FarmValues) {
  const { rollouts, untilResolved } = await countAll([name], o);
  if (untilResolved.length > 0)
    throw new UsageError(
      `${name}: --until-resolved ended an instance at a success, so its rates cannot be compared; run it without this option`,
    );
  return { name, facts: rollouts };
}

function rendering(of: ReturnType<typeof compareSides>, format: string, title: string): string {
  if (format === 'json') return JSON.stringify(of);
  const tables = comparisonTables(of);
  return format === 'markdown' ? markdownOf(title, tables) : tables.map(renderFigures).join('\n\n');
}
