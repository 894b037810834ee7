/** `swefarm dataset verify`: evaluates gold and the untouched tree several times, and writes the rows that hold. */
import { brokenBecause, UsageError } from '@swefarm/shared';
import type { Command } from 'commander';
import type { VerbatimRow } from '../datasets/tools/rows.ts';
import { idOf } from '../datasets/tools/select.ts';
import { readRow } from '../datasets/tools/variables.ts';
import { openVerbatim } from '../datasets/tools/verbatim.ts';
import { formOf, writeRows } from '../datasets/tools/write.ts';
import { appendFindings, registryPath } from '../health/registry.ts';
import { inFolder, replaceRecord } from '../output/appendfile.ts';
import { countNames } from '../output/tally.ts';
import { EXIT, type ExitCode } from '../run/exit.ts';
import { addExaminationOptions, type Examined, examine } from './examine.ts';
import { datasetOf, type Flags, producerConfig, rowOptions, wholeNumber } from './options.ts';
import { listenForEvaluations } from './stop.ts';
import { say } from './terminal.ts';

export function addDatasetVerify(dataset: Command): void {
  const command = dataset
    .command('verify')
    .description(
      'evaluate the gold patch and the untouched tree of each row several times; write the rows whose answer is always the right one',
    )
    .option('--times <n>', 'evaluations of each', wholeNumber, 3)
    .requiredOption('--output <file>', 'file for the clean rows, unchanged: .jsonl, .json or .parquet')
    .option(
      '--findings <file>',
      'JSONL with a line for each row: clean, or why it is out (default: OUTPUT.findings.jsonl)',
    );
  addExaminationOptions(command).action(async (flags: Flags) => {
    process.exitCode = await verify({ ...flags, skipUngradable: true });
  });
}

type Finding = { instance_id: string; clean: boolean; why: string | null; flaky: string[]; times: number };

async function verify(flags: Flags): Promise<ExitCode> {
  const output = String(flags.output);
  if (output === '-' || (flags.times as number) < 1) {
    throw new UsageError('--output names a file for the clean rows, and --times is at least 1');
  }
  formOf(output);
  const stop = listenForEvaluations();
  const dataset = await datasetOf(flags, stop.draining);
  const chosen = new Set(dataset.instances.map(({ instance_id: id }) => id));
  const instances = dataset.instances.filter(({ patch }) => patch.trim() !== '');
  const times = flags.times as number;
  const { findings, unjudged, complete } = await examine(
    { ...dataset, instances },
    flags,
    { gold: times, noop: times },
    stop,
  );
  await appendFindings(registryPath(flags.health, producerConfig(flags).state_dir), [...findings.values()]);
  if (!complete) {
    say('swefarm: not all were evaluated: nothing is written');
    return EXIT.interrupted;
  }
  const file = await openVerbatim(String(flags.dataset));
  const found: Finding[] = [];
  const examined = new Set(instances.map(({ instance_id: id }) => id));
  for await (const row of file.rows()) {
    const read = readRow(row, rowOptions(flags));
    if ('problem' in read) found.push(out(idOf(row), `it cannot be evaluated: ${read.problem}`));
    else if (examined.has(read.instance.instance_id))
      found.push(verdictOf(read.instance.instance_id, { findings, unjudged }, times));
    else if (chosen.has(read.instance.instance_id))
      found.push(out(read.instance.instance_id, 'it withholds its gold patch'));
  }
  const clean = new Set(found.flatMap((one) => (one.clean ? [one.instance_id] : [])));
  const lines = found.map((one) => JSON.stringify(one)).join('\n');
  const findingsFile = String(
    flags.findings ?? `${output.replace(/\.(jsonl?|parquet)(\.gz)?$/, '')}.findings.jsonl`,
  );
  await inFolder(findingsFile, () => replaceRecord(findingsFile, lines));
  async function* rows(): AsyncGenerator<VerbatimRow> {
    for await (const row of file.rows()) {
      const read = readRow(row, rowOptions(flags));
      if ('instance' in read && clean.has(read.instance.instance_id)) yield row;
    }
  }
  if (clean.size > 0) await writeRows(output, { rows, parquet: file.parquet });
  tell(found, clean.size, output, findingsFile);
  return clean.size === found.length ? EXIT.allJudged : EXIT.someNotJudged;
}

type Judgements = Pick<Examined, 'findings' | 'unjudged'>;

const out = (instance_id: string, why: string): Finding => ({
  instance_id,
  clean: false,
  why,
  flaky: [],
  times: 0,
});

function verdictOf(id: string, { findings, unjudged }: Judgements, times: number): Finding {
  const finding = findings.get(id);
  if (!finding) {
    const { reason, message } = unjudged.get(id) ?? {
      reason: 'not evaluated',
      message: 'it was not evaluated',
    };
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

function tell(found: readonly Finding[], clean: number, output: string, findingsFile: string): void {
  for (const { instance_id: id, flaky } of found) for (const name of flaky) say(`flaky: ${id}: ${name}`);
  const reasons = countNames(found.flatMap(({ why }) => (why === null ? [] : [why.replace(/ \(.*/s, '')])));
  for (const [reason, times] of Object.entries(reasons)) say(`${times} out: ${reason}`);
  const written = clean === 0 ? 'no file is written' : `written to ${output}`;
  say(`${clean} of ${found.length} rows are clean, ${written}; why the others are out: ${findingsFile}`);
}
