/** `swefarm dataset verify`: evaluates each row several times, and writes the rows whose verdicts are stable and correct. */
import { isDeepStrictEqual } from 'node:util';
import { formOf, idOf, openVerbatim, readRow, type VerbatimRow, writeRows } from '@swefarm/datasets';
import { appendFindings, registryPath } from '@swefarm/runs';
import { brokenBecause, UsageError } from '@swefarm/shared';
import { countNames, inFolder, replaceRecord } from '@swefarm/trajectories';
import { command, defaulted, required, text, whole } from './declare.ts';
import { EXAMINATION, type Examined, examine } from './examine.ts';
import { EXIT } from './exit.ts';
import { datasetOf, producerConfig, rowOptions } from './options.ts';
import { listenForEvaluations } from './stop.ts';
import { printStatus } from './terminal.ts';

export const verify = command({
  description:
    'evaluate the gold patch and the untouched tree of each row several times; write the rows whose verdict is always correct',
  options: {
    '--times <n>': defaulted(whole('evaluations of each'), 3),
    '--output <file>': required(text('file for the clean rows, unchanged: .jsonl, .json or .parquet')),
    ...EXAMINATION,
  },
  example: 'swefarm dataset verify --dataset rows.jsonl --output clean.jsonl',
  async run(given) {
    const o = { ...given, skipUngradable: true };
    const { output, times, dataset: path } = o;
    if (output === '-' || times < 1) {
      throw new UsageError('--output names a file for the clean rows, and --times is at least 1');
    }
    formOf(output);
    const stop = listenForEvaluations();
    const dataset = await datasetOf(o, stop.draining);
    const instances = dataset.instances.filter(({ patch }) => patch.trim() !== '');
    const judged = await examine({ ...dataset, instances }, o, { gold: times, noop: times }, stop);
    await appendFindings(registryPath(o.health, producerConfig(o).state_dir), [...judged.findings.values()]);
    if (!judged.complete) {
      printStatus('swefarm: not all were evaluated: nothing is written');
      return EXIT.interrupted;
    }
    const examined = new Set(instances.map(({ instance_id: id }) => id));
    const evaluated = new Map(dataset.instances.map((instance) => [instance.instance_id, instance]));
    const findingOf = (row: VerbatimRow): Finding | null => {
      const read = readRow(row, rowOptions(o));
      if ('problem' in read) return out(idOf(row), `it cannot be evaluated: ${read.problem}`);
      const { instance } = read;
      const known = evaluated.get(instance.instance_id);
      if (!known) return null;
      if (!isDeepStrictEqual(known, instance))
        throw changed(path, `${row.where} is not the row that was evaluated`);
      return examined.has(instance.instance_id)
        ? verdictOf(instance.instance_id, judged, times)
        : out(instance.instance_id, 'it withholds its gold patch');
    };
    const some = instances.some(({ instance_id: id }) => verdictOf(id, judged, times).clean);
    const found = await writeClean(path, output, some, findingOf);
    const missing = evaluated.size - found.filter(({ instance_id: id }) => evaluated.has(id)).length;
    if (missing > 0) throw changed(path, `${missing} evaluated rows are missing`);
    const lines = found.map((one) => JSON.stringify(one)).join('\n');
    const findingsFile = `${output.replace(/\.(jsonl?|parquet)(\.gz)?$/, '')}.findings.jsonl`;
    await inFolder(findingsFile, () => replaceRecord(findingsFile, lines));
    const clean = found.filter((one) => one.clean).length;
    printFindings(found, clean, output, findingsFile);
    return clean === found.length ? EXIT.allJudged : EXIT.someNotJudged;
  },
});

type Finding = { instance_id: string; clean: boolean; why: string | null; flaky: string[]; times: number };

/** Returns the error for a file that changed during the evaluations, which take hours. */
const changed = (path: string, how: string): UsageError =>
  new UsageError(`${path}: ${how}: the file changed while it was verified; verify it again`);

/** Writes the clean rows and returns the findings that are not null. `some` false: no row is clean, so no file is written. */
async function writeClean(
  path: string,
  output: string,
  some: boolean,
  findingOf: (row: VerbatimRow) => Finding | null,
): Promise<Finding[]> {
  const file = await openVerbatim(path);
  let found: Finding[] = [];
  async function* rows(): AsyncGenerator<VerbatimRow> {
    // Parquet output calls `rows` more than once, to find the types of the columns first.
    found = [];
    for await (const row of file.rows()) {
      const finding = findingOf(row);
      if (finding) found.push(finding);
      if (finding?.clean) yield row;
    }
  }
  if (some) await writeRows(output, { rows, parquet: file.parquet });
  else for await (const _row of rows());
  return found;
}

const NOT_EVALUATED = { reason: 'not evaluated', message: 'it was not evaluated' };

const out = (instance_id: string, why: string): Finding => ({
  instance_id,
  clean: false,
  why,
  flaky: [],
  times: 0,
});

function verdictOf(id: string, { findings, unjudged }: Examined, times: number): Finding {
  const finding = findings.get(id);
  if (!finding) {
    const { reason, message } = unjudged.get(id) ?? NOT_EVALUATED;
    return out(id, `no evaluation came to a verdict: ${reason} (${message})`);
  }
  const why =
    brokenBecause(finding) ??
    (finding.flaky.length > 0 ? 'tests change their outcome' : null) ??
    (finding.noop_resolves === null ? 'the untouched tree came to no verdict' : null) ??
    (finding.times < times
      ? `only ${finding.times} of ${times} evaluations of gold came to a verdict`
      : null);
  return { instance_id: id, clean: why === null, why, flaky: finding.flaky, times: finding.times };
}

function printFindings(found: readonly Finding[], clean: number, output: string, findingsFile: string): void {
  for (const { instance_id: id, flaky } of found)
    for (const name of flaky) printStatus(`flaky: ${id}: ${name}`);
  const reasons = countNames(found.flatMap(({ why }) => (why === null ? [] : [why.replace(/ \(.*/s, '')])));
  for (const [reason, times] of Object.entries(reasons)) printStatus(`${times} out: ${reason}`);
  const written = clean === 0 ? 'no file is written' : `written to ${output}`;
  printStatus(
    `${clean} of ${found.length} rows are clean, ${written}; why the others are out: ${findingsFile}`,
  );
}
