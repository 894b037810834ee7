/** `swefarm dataset inspect|filter|sample|split|dedup|merge|convert`: tools for files of rows. They never change their input. */

import type { VerbatimFile, VerbatimRow } from '@swefarm/datasets';
import {
  convertRows,
  DERIVED,
  distinctRows,
  drawSample,
  FAMILY_FORMS,
  type FamilyForm,
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
import { type Command, Option } from 'commander';
import { renderInspection } from '../view/inspection.ts';
import { EXIT } from './exit.ts';
import { expandIds } from './ids.ts';
import { addRowOptions, type Flags, gather, regularExpression, rowOptions, wholeNumber } from './options.ts';
import { print, say } from './terminal.ts';

const output = (): Option =>
  new Option(
    '--output <file>',
    'file to write: .jsonl, .json (both also .gz) or .parquet; - is standard output, as JSONL',
  ).makeOptionMandatory();
const keep = (): Option =>
  new Option('--keep <which>', 'which row stays when several share a key and differ; error: none, name them')
    .choices(['first', 'last', 'error'])
    .default('error');
const seed = (): Option =>
  new Option('--seed <n>', 'the same seed chooses the same rows').argParser(wholeNumber).default(0);

export function addDatasetTools(dataset: Command): void {
  const inspection = dataset
    .command('inspect')
    .description(
      'tell what a file holds: columns, families, repositories, tests, and what nobody can grade and why',
    )
    .argument('<file>', 'dataset as JSON, JSONL (also .gz) or parquet')
    .option('--json', 'print JSON (the default in a pipe)');
  addRowOptions(inspection).action(inspect);
  addFilter(dataset);
  dataset
    .command('sample')
    .description('write rows drawn at random')
    .argument('<file>')
    .addOption(new Option('--count <n>', 'how many').argParser(wholeNumber).makeOptionMandatory())
    .option('--per-repo', 'so many of each repository')
    .addOption(seed())
    .addOption(output())
    .action(sample);
  dataset
    .command('split')
    .description(
      'write the rows of a file into several, such as train and validation; all rows of an id, or of a repository, go to one',
    )
    .argument('<file>')
    .requiredOption('--parts <parts>', 'names and shares of the parts: train=0.9,validation=0.1')
    .addOption(
      new Option('--by <key>', 'what must not be torn').choices(['instance', 'repo']).default('instance'),
    )
    .addOption(seed())
    .requiredOption('--output <file>', 'name with {part} in it, such as data.{part}.jsonl')
    .action(split);
  dataset
    .command('dedup')
    .description('leave out rows whose id another row has')
    .argument('<file>')
    .option(
      '--by <columns>',
      'rows are equal when these columns are: patch,problem_statement (default: the id)',
    )
    .addOption(keep())
    .addOption(output())
    .action((file: string, flags: Flags) => combine([file], flags));
  dataset
    .command('merge')
    .description('write the rows of several files into one, each id once')
    .argument('<file...>')
    .addOption(keep())
    .addOption(output())
    .action((files: string[], flags: Flags) => combine(files, flags));
  addConvert(dataset);
}

function addConvert(dataset: Command): void {
  const command = dataset
    .command('convert')
    .description(
      "write a file in another form (JSON, JSONL, parquet, by the name of the output), with all columns and digits; or its rows in another family's form, where nothing is lost",
    )
    .argument('<file>')
    .addOption(
      new Option(
        '--to <form>',
        "form of the rows: swefarm, with environment and plan, from any family; swebench, for SWE-bench's harness (default: as they are)",
      ).choices(FAMILY_FORMS),
    )
    .addOption(output());
  addRowOptions(command).action(convert);
}

function addFilter(dataset: Command): void {
  const names = Object.entries(DERIVED).map(([name, meaning]) => `  ${name.padEnd(12)} ${meaning}`);
  const command = dataset
    .command('filter')
    .description('write the rows that pass all given criteria, unchanged')
    .argument('<file>')
    .option(
      '--where <expression>',
      'criterion in CEL over the columns of a row: \'between(len(FAIL_TO_PASS), 2, 5) && repo in ["a/b", "c/d"]\'',
    )
    .option('--ids <ids>', 'only these instances: a,b,c, or @FILE with one id per line (repeatable)', gather)
    .option('--repo <owner/name>', 'only this repository (repeatable)', gather)
    .option('--match <regex>', 'only instance ids that match')
    .option('--max-tests <n>', 'only instances with at most n tests', wholeNumber)
    .option('--gradable', 'only rows that this farm can evaluate')
    .option('--invert', 'write the rows that do not pass')
    .addOption(output())
    .addHelpText('after', `\nBeside the columns, an expression knows:\n${names.join('\n')}`);
  addRowOptions(command).action(filter);
}

async function inspect(path: string, flags: Flags): Promise<void> {
  const facts = await inspectDataset(await openVerbatim(path), rowOptions(flags));
  const human = flags.json !== true && process.stdout.isTTY;
  await print(human ? renderInspection(facts) : JSON.stringify(facts));
  process.exitCode = facts.gradable === facts.rows ? EXIT.allJudged : EXIT.someNotJudged;
}

async function filter(path: string, flags: Flags): Promise<void> {
  const file = await openVerbatim(path);
  const passes = rowFilter(path, {
    ids:
      flags.ids === undefined ? undefined : (flags.ids as string[]).flatMap((ids) => expandIds(ids, '--ids')),
    repos: flags.repo as string[] | undefined,
    match: flags.match === undefined ? undefined : regularExpression(String(flags.match)),
    maxTests: flags.maxTests as number | undefined,
    criterion: flags.where === undefined ? undefined : parseCriterion(String(flags.where)),
    gradable: flags.gradable === true,
    options: rowOptions(flags),
  });
  const wanted = flags.invert !== true;
  await write(String(flags.output), file, (row) => passes(row) === wanted);
}

async function sample(path: string, flags: Flags): Promise<void> {
  const file = await openVerbatim(path);
  const drawn = await drawSample(file, {
    count: flags.count as number,
    seed: flags.seed as number,
    perRepository: flags.perRepo === true,
  });
  await write(String(flags.output), file, (row) => drawn.has(row.where));
}

async function split(path: string, flags: Flags): Promise<void> {
  const name = String(flags.output);
  if (!name.includes('{part}'))
    throw new UsageError('--output: expected {part} in the name, such as data.{part}.jsonl');
  const parts = parseParts(String(flags.parts));
  const file = await openVerbatim(path);
  const found = await splitRows(file, parts, flags.by as 'instance' | 'repo', flags.seed as number);
  for (const part of parts) {
    await write(name.replaceAll('{part}', part.name), file, (row) => found.get(row.where) === part.name);
  }
}

async function combine(paths: readonly string[], flags: Flags): Promise<void> {
  const files: VerbatimFile[] = [];
  for (const path of paths) files.push(await openVerbatim(path));
  const columns = flags.by === undefined ? null : String(flags.by).split(',');
  const distinct = await distinctRows(files, { keep: flags.keep as 'first' | 'last' | 'error', columns });
  async function* rows(): AsyncGenerator<VerbatimRow> {
    for (const [at, file] of files.entries()) {
      for await (const row of file.rows()) if (distinct.keep[at]?.has(row.where)) yield row;
    }
  }
  const [first] = files;
  const count = await writeRows(String(flags.output), {
    rows,
    parquet: (files.length === 1 && first?.parquet) || null,
  });
  say(
    `${count} rows written; left out: ${distinct.equal} that equal another, ${distinct.different} that share a key and differ`,
  );
}

async function convert(path: string, flags: Flags): Promise<void> {
  const file = await openVerbatim(path);
  const output = String(flags.output);
  if (flags.to === undefined) return write(output, file, () => true);
  const form = flags.to as FamilyForm;
  const conversion = await convertRows(file, form, rowOptions(flags));
  const { all, refused } = conversion;
  if (refused.size > 0 && flags.skipUngradable !== true) throw unconverted(path, form, conversion);
  const left = [...refused.values()].reduce((sum, { rows }) => sum + rows, 0);
  if (left < all) await writeRows(output, { rows: conversion.rows, parquet: null });
  for (const [reason, { rows }] of refused) say(`left out ${rows} of ${all} rows: ${reason}`);
  say(`${output === '-' ? '' : `${output}: `}${all - left} of ${all} rows`);
  if (left === all) process.exitCode = EXIT.someNotJudged;
}

async function write(
  output: string,
  file: VerbatimFile,
  takes: (row: VerbatimRow) => boolean,
): Promise<void> {
  let all = 0;
  async function* rows(): AsyncGenerator<VerbatimRow> {
    all = 0;
    for await (const row of file.rows()) {
      all += 1;
      if (takes(row)) yield row;
    }
  }
  const count = await writeRows(output, { rows, parquet: file.parquet });
  say(`${output === '-' ? '' : `${output}: `}${count} of ${all} rows`);
  // An empty selection is a mistake more often than not: a script must notice.
  if (count === 0) process.exitCode = EXIT.someNotJudged;
}
