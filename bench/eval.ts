/**
 * Grades the same predictions by `swefarm eval` and by the harness's own `run_evaluation`, alternately: same instances,
 * patches, images and number of workers, whole commands. The verdicts must be equal.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Seconds } from '@swefarm/shared';
import { runCommand } from '@swefarm/testkit';
import { NAMESPACE } from './corpus.ts';
import { ensureHarnesses, runPython } from './harness.ts';
import { table } from './print.ts';
import type { Skipped } from './shell.ts';
import { median, percentile, rounded } from './statistics.ts';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '..');
const INSTANCES = join(ROOT, '../shared/instances/instances.jsonl');

export type EvalSize = { workers: number; ids: readonly string[] };

/** The tests of each take some seconds, so that the overhead shows; the harness needs no network for them. */
export const EVAL_IDS = [
  'marshmallow-code__marshmallow-1359',
  'pytest-dev__pytest-11148',
  'pydicom__pydicom-1256',
] as const;

export type EvalCell = {
  workers: number;
  predictions: number;
  /** Whole commands, one sample a round. */
  seconds: { ours: number[]; harness: number[] };
  /** Median over the rounds of harness / ours. */
  harness_over_ours: number;
  /** Our time per prediction, less the container's start and the tests. */
  overhead_ms: { p50: number; p95: number };
};

export type EvalPart = { reps: number; cells: EvalCell[]; skipped: Skipped[] };

type Row = { instance_id: string; image: string; patch: string };
type EvalInputs = { folder: string; python: string; rows: Row[]; dataset: string; predictions: string };

export async function measureEval(sizes: readonly EvalSize[], reps: number): Promise<EvalPart> {
  if (!existsSync(INSTANCES)) {
    const why = 'no ../shared/instances: the harness knows no other instances that are here';
    return { reps, cells: [], skipped: [{ what: 'eval', why }] };
  }
  const missing = await missingImages(sizes.flatMap(({ ids }) => ids));
  if (missing.length > 0) {
    const why = `the engine has no ${missing.join(', ')}: npm run ci:full makes them`;
    return { reps, cells: [], skipped: [{ what: 'eval', why }] };
  }
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-bench-eval-'));
  try {
    const python = await ensureHarnesses();
    const cells: EvalCell[] = [];
    for (const size of sizes)
      cells.push(await measureSize(await prepare(folder, python, size.ids), size, reps));
    return { reps, cells, skipped: [] };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Drops the commands in a row: the harness uses its own table, and both sides must run the same commands. */
function asHarness(line: string): Row {
  const { environment: _own, ...row } = JSON.parse(line) as Row & { environment?: unknown };
  return row;
}

async function readRows(ids: readonly string[]): Promise<Row[]> {
  const all = (await readFile(INSTANCES, 'utf8')).split('\n').filter(Boolean);
  return all.map(asHarness).filter((row) => ids.includes(row.instance_id));
}

/** Images that are made of the instances' recipes, which takes minutes each. */
async function missingImages(ids: readonly string[]): Promise<string[]> {
  const images = (await readRows(ids)).map(({ image }) => image);
  const isThere = (image: string) =>
    run('docker', ['image', 'inspect', image]).then(
      () => true,
      () => false,
    );
  const there = await Promise.all(images.map(isThere));
  return images.filter((_image, at) => !there[at]);
}

async function prepare(folder: string, python: string, ids: readonly string[]): Promise<EvalInputs> {
  const rows = await readRows(ids);
  for (const { instance_id, image } of rows) {
    const name = `sweb.eval.x86_64.${instance_id.toLowerCase()}:latest`.replace('__', '_1776_');
    await run('docker', ['tag', image, `${NAMESPACE}/${name}`]);
  }
  const jsonLines = (values: readonly object[]): string =>
    values.map((value) => `${JSON.stringify(value)}\n`).join('');
  const dataset = join(folder, 'rows.jsonl');
  const predictions = join(folder, 'predictions.jsonl');
  await mkdir(folder, { recursive: true });
  await writeFile(dataset, jsonLines(rows));
  await writeFile(
    predictions,
    jsonLines(
      rows.map(({ instance_id, patch }) => ({
        instance_id,
        model_name_or_path: 'bench',
        model_patch: patch,
      })),
    ),
  );
  return { folder, python, rows, dataset, predictions };
}

async function measureSize(inputs: EvalInputs, { workers }: EvalSize, reps: number): Promise<EvalCell> {
  const seconds: EvalCell['seconds'] = { ours: [], harness: [] };
  const overheads: number[] = [];
  for (let rep = 0; rep < reps; rep++) {
    const name = `w${workers}r${rep}`;
    const ours = async (): Promise<void> => {
      const batch = await runOurs(inputs, name, workers);
      seconds.ours.push(batch.seconds);
      overheads.push(...batch.overheadsMs);
    };
    const theirs = async (): Promise<void> => {
      seconds.harness.push(await runHarness(inputs, name, workers));
    };
    for (const one of rep % 2 === 0 ? [ours, theirs] : [theirs, ours]) await one();
    await compare(inputs, name);
  }
  const ratios = seconds.harness.map((one, at) => one / (seconds.ours[at] ?? Number.NaN));
  return {
    workers,
    predictions: inputs.rows.length,
    seconds,
    harness_over_ours: rounded(median(ratios), 2),
    overhead_ms: { p50: rounded(median(overheads), 0), p95: rounded(percentile(overheads, 95), 0) },
  };
}

const since = (from: number): number => rounded((performance.now() - from) / 1000, 1);

async function runOurs(inputs: EvalInputs, name: string, workers: number) {
  const home = join(inputs.folder, 'ours');
  await mkdir(home, { recursive: true });
  const output = join(home, `${name}.jsonl`);
  const from = performance.now();
  const { code, stderr } = await runCommand(
    'swefarm',
    [
      ...['eval', '--dataset', inputs.dataset, '--predictions', inputs.predictions, '--run-id', name],
      ...['--grader', 'swebench-4.1.0', '--runtime', 'docker', '--max-workers', String(workers)],
      ...['--logs-dir', join(home, 'logs/run_evaluation'), '--report-dir', home, '--output', output],
    ],
    { SWEFARM_STATE_DIR: join(home, 'state'), SWEFARM_SCRATCH_DIR: join(home, 'scratch') },
  );
  const seconds = since(from);
  if (code !== 0) throw new Error(`swefarm eval ended with ${code}: ${stderr}`);
  const lines = (await readFile(output, 'utf8')).split('\n').filter(Boolean);
  const overheadsMs = lines.map((line) => {
    const spent = (JSON.parse(line) as { seconds: Seconds }).seconds;
    return 1000 * (spent.total - (spent.evaluation_start ?? 0) - (spent.tests ?? 0));
  });
  return { seconds, overheadsMs };
}

async function runHarness(inputs: EvalInputs, name: string, workers: number): Promise<number> {
  const from = performance.now();
  await runPython(
    inputs.python,
    [
      ...['-m', 'swebench.harness.run_evaluation', '--dataset_name', inputs.dataset, '--split', 'test'],
      ...['--predictions_path', inputs.predictions, '--max_workers', String(workers), '--run_id', name],
      ...['--namespace', NAMESPACE, '--cache_level', 'instance'],
    ],
    join(inputs.folder, 'harness'),
  );
  return since(from);
}

/** Compares each report.json and the run report whole: times of graders that disagree mean nothing. */
async function compare(inputs: EvalInputs, name: string): Promise<void> {
  const files = inputs.rows.map(({ instance_id }) =>
    join('logs/run_evaluation', name, 'bench', instance_id, 'report.json'),
  );
  for (const file of [...files, `bench.${name}.json`]) {
    const [ours, theirs] = await Promise.all(
      ['ours', 'harness'].map((who) => readFile(join(inputs.folder, who, file), 'utf8')),
    );
    if (ours !== theirs) throw new Error(`${file}: ours differs from the harness's`);
  }
}

export function printEval({ cells, reps, skipped }: EvalPart): string {
  const head = ['workers', 'predictions', 'harness/ours', 'ours s', 'harness s', 'overhead ms p50', 'p95'];
  const rows = cells.map(({ workers, predictions, harness_over_ours, seconds, overhead_ms }) => [
    workers,
    predictions,
    harness_over_ours,
    median(seconds.ours),
    median(seconds.harness),
    overhead_ms.p50,
    overhead_ms.p95,
  ]);
  return [
    `Predictions graded (${reps} rounds), whole commands; aims: harness/ours >= 2, overhead <= 300 ms beside container start and tests`,
    ...(rows.length > 0 ? [table([head, ...rows])] : []),
    ...skipped.map(({ what, why }) => `not measured: ${what} (${why})`),
  ].join('\n');
}
