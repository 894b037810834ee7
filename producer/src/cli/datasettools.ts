/** `swefarm dataset inspect|filter|sample|split|dedup|merge|convert`: tools that read files of rows and write new files. */
import type { VerbatimFile, VerbatimRow } from '@swefarm/datasets';
import {
  convertRows,
  DERIVED,
  distinctRows,
  drawSample,
  FAMILY_FORMS,
  inspectDataset,
  openVerbatim,
  parseCriterion,
  parseParts,
  rowFilter,
  splitRows,
  unconverted,
  writeRows,
} from '@swefarm/datasets';
import { UsageError } from '@swefarm/shared';
import { renderInspection } from '../view/inspection.ts';
import { choice, command, defaulted, flag, required, text, whole } from './declare.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { FILTERS, filtersOf, ROWS, rowOptions } from './options.ts';
import { print, printStatus } from './terminal.ts';

const FILE = { '<file>': '' };
const OUTPUT = {
  '--output <file>': required(
    text('file to write: .jsonl, .json (both also .gz) or .parquet; - is standard output, as JSONL'),
  ),
};
const KEEP = {
  '--keep <which>': defaulted(
    choice('which row remains when several share a key and differ; error: fail and list them', [
      'first',
      'last',
      'error',
    ]),
    'error',
  ),
};
const SEED = { '--seed <n>': defaulted(whole('the same seed chooses the same rows'), 0) };

const inspect = command({
  description: 'show columns, families, repositories, tests and ungradable rows of a file',
  arguments: { '<file>': 'dataset as JSON, JSONL (also .gz) or parquet' },
  options: { '--json': flag('print JSON (the default in a pipe)'), ...ROWS },
  example: 'swefarm dataset inspect rows.jsonl --json',
  async run(o, { file }) {
    const facts = await inspectDataset(await openVerbatim(file), rowOptions(o));
    const human = !o.json && process.stdout.isTTY;
    await print(human ? renderInspection(facts) : JSON.stringify(facts));
    return facts.gradable === facts.rows ? EXIT.allJudged : EXIT.someNotJudged;
  },
});

const DERIVED_NAMES = Object.entries(DERIVED).map(([name, meaning]) => `  ${name.padEnd(12)} ${meaning}`);

const filter = command({
  description: 'write the rows that pass all given criteria, unchanged',
  arguments: FILE,
  options: {
    '--where <expression>': text(
      'criterion in CEL over the columns of a row: \'between(len(FAIL_TO_PASS), 2, 5) && repo in ["a/b", "c/d"]\'',
    ),
    ...FILTERS,
    '--gradable': flag('only rows that this farm can evaluate'),
    ...OUTPUT,
    ...ROWS,
  },
  notes: `\nBeside the columns, an expression knows:\n${DERIVED_NAMES.join('\n')}\n`,
  example: 'swefarm dataset filter rows.jsonl --max-tests 50 --output small.jsonl',
  async run(o, { file: path }) {
    const file = await openVerbatim(path);
    const passes = rowFilter(path, {
      ...filtersOf(o),
      criterion: o.where === undefined ? undefined : parseCriterion(o.where),
      gradable: o.gradable,
      options: rowOptions(o),
    });
    return await write(o.output, file, passes);
  },
});

const sample = command({
  description: 'write rows drawn at random',
  arguments: FILE,
  options: {
    '--count <n>': required(whole('how many')),
    '--per-repo': flag('so many of each repository'),
    ...SEED,
    ...OUTPUT,
  },
  example: 'swefarm dataset sample rows.jsonl --count 100 --output some.jsonl',
  async run({ count, seed, perRepo, output }, { file: path }) {
    const file = await openVerbatim(path);
    const drawn = await drawSample(file, { count, seed, perRepository: perRepo });
    return await write(output, file, (row) => drawn.has(row.where));
  },
});

const split = command({
  description:
    'write the rows of a file into several, such as train and validation; all rows of an id, or of a repository, go to one',
  arguments: FILE,
  options: {
    '--parts <parts>': required(text('names and shares of the parts: train=0.9,validation=0.1')),
    '--by <key>': defaulted(choice('rows that remain together', ['instance', 'repo']), 'instance'),
    ...SEED,
    '--output <file>': required(text('name with {part} in it, such as data.{part}.jsonl')),
  },
  example: 'swefarm dataset split rows.jsonl --parts train=0.9,validation=0.1 --output rows.{part}.jsonl',
  async run({ output, parts: text, by, seed }, { file: path }) {
    if (!output.includes('{part}'))
      throw new UsageError('--output: expected {part} in the name, such as data.{part}.jsonl');
    const parts = parseParts(text);
    const file = await openVerbatim(path);
    const found = await splitRows(file, parts, by, seed);
    let code: ExitCode = EXIT.allJudged;
    for (const { name } of parts) {
      const written = output.replaceAll('{part}', name);
      const own = await write(written, file, (row) => found.get(row.where) === name);
      if (own > code) code = own;
    }
    return code;
  },
});

const dedup = command({
  description: 'leave out rows whose id another row has',
  arguments: FILE,
  options: {
    '--by <columns>': text(
      'rows are equal when these columns are: patch,problem_statement (default: the id)',
    ),
    ...KEEP,
    ...OUTPUT,
  },
  example: 'swefarm dataset dedup rows.jsonl --output unique.jsonl',
  run: (o, { file }) => combine([file], o.by?.split(',') ?? null, o),
});

const merge = command({
  description: 'write the rows of several files into one, each id once',
  arguments: { '<file...>': '' },
  options: { ...KEEP, ...OUTPUT },
  example: 'swefarm dataset merge first.jsonl second.jsonl --output all.jsonl',
  run: (o, { file }) => combine(file, null, o),
});

const convert = command({
  description:
    "write a file in another form (JSON, JSONL, parquet, by the name of the output), with all columns and digits; or its rows in another family's form, where nothing is lost",
  arguments: FILE,
  options: {
    '--to <form>': choice(
      "form of the rows: swefarm, with environment and plan, from any family; swebench, for SWE-bench's harness (default: as they are)",
      FAMILY_FORMS,
    ),
    ...OUTPUT,
    ...ROWS,
  },
  example: 'swefarm dataset convert rows.parquet --output rows.jsonl',
  async run(o, { file: path }) {
    const file = await openVerbatim(path);
    const { output, to: form } = o;
    if (form === undefined) return await write(output, file, () => true);
    const conversion = await convertRows(file, form, rowOptions(o));
    const { all, refused } = conversion;
    if (refused.size > 0 && !o.skipUngradable) throw unconverted(path, form, conversion);
    const left = [...refused.values()].reduce((sum, { rows }) => sum + rows, 0);
    if (left < all) await writeRows(output, { rows: conversion.rows, parquet: null });
    for (const [reason, { rows }] of refused) printStatus(`left out ${rows} of ${all} rows: ${reason}`);
    printStatus(`${output === '-' ? '' : `${output}: `}${all - left} of ${all} rows`);
    return left === all ? EXIT.someNotJudged : EXIT.allJudged;
  },
});

export const DATASET_TOOLS = { inspect, filter, sample, split, dedup, merge, convert };

async function combine(
  paths: readonly string[],
  columns: readonly string[] | null,
  { keep, output }: { keep: 'first' | 'last' | 'error'; output: string },
): Promise<void> {
  const files: VerbatimFile[] = [];
  for (const path of paths) files.push(await openVerbatim(path));
  const distinct = await distinctRows(files, { keep, columns });
  async function* rows(): AsyncGenerator<VerbatimRow> {
    for (const [at, file] of files.entries()) {
      for await (const row of file.rows()) if (distinct.unique[at]?.has(row.where)) yield row;
    }
  }
  const [first] = files;
  const count = await writeRows(output, {
    rows,
    parquet: (files.length === 1 && first?.parquet) || null,
  });
  printStatus(
    `${count} rows written; left out: ${distinct.equal} that equal another, ${distinct.different} that share a key and differ`,
  );
}

async function write(
  output: string,
  file: VerbatimFile,
  takes: (row: VerbatimRow) => boolean,
): Promise<ExitCode> {
  let all = 0;
  async function* rows(): AsyncGenerator<VerbatimRow> {
    all = 0;
    for await (const row of file.rows()) {
      all += 1;
      if (takes(row)) yield row;
    }
  }
  const count = await writeRows(output, { rows, parquet: file.parquet });
  printStatus(`${output === '-' ? '' : `${output}: `}${count} of ${all} rows`);
  // An empty selection is usually a mistake, so the exit code reports it.
  return count === 0 ? EXIT.someNotJudged : EXIT.allJudged;
}
