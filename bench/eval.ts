/**
 * Evaluates a corpus of four dataset families by `swefarm eval`, and by the harness of the family where PyPI has one:
 * the same rows, predictions, images and number of workers, whole commands in turns. The verdicts must be equal.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { readLines, runCommand, words } from '@swefarm/testkit';
import { type Corpus, type CorpusFamily, NAMESPACE, openCorpus, type Prediction } from './corpus.ts';
import { ensureHarnesses, runHarness, swebenchArguments } from './harness.ts';
import { skippedLines, table } from './print.ts';
import type { Skipped } from './sandbox.ts';
import { median, rounded } from './statistics.ts';

export type EvalSize = { each: number; workers: number };

export type FamilyCell = {
  family: string;
  predictions: number;
  /** Number of predictions that resolve, by our verdicts. */
  resolved: number;
  beside: string | null;
  /** Whole commands, one sample a round. */
  seconds: { ours: number[]; beside: number[] };
  /** Number of predictions whose tests ran: swesmith runs the tests of an empty patch, the farm and swebench do not. */
  run: { ours: number; beside: number };
  evaluations_a_minute: { ours: number; beside: number | null };
  /** Median over the rounds of ours / beside, both evaluations a minute. */
  ours_over_beside: number | null;
};

export type EvalPart = { reps: number; workers: number; cells: FamilyCell[]; skipped: Skipped[] };

const ALL = 'all in one command';
const VERSIONS = { swebench: 'swebench 4.1.0', swesmith: 'swesmith 0.0.9' } as const;

type Setting = { folder: string; python: string; workers: number };
type Verdict = { instance_id: string; resolved: boolean | null };

/** @throws Error that names the prediction whose verdicts differ */
export async function measureEval({ each, workers }: EvalSize, reps: number): Promise<EvalPart> {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-bench-corpus-'));
  try {
    const python = await ensureHarnesses();
    await using corpus = await openCorpus(folder, each);
    const setting = { folder, python, workers };
    const cells = [await measureAll(setting, corpus, reps)];
    for (const family of corpus.families) cells.push(await measureFamily(setting, family, reps));
    return { reps, workers, cells, skipped: corpus.skipped };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureAll(setting: Setting, corpus: Corpus, reps: number): Promise<FamilyCell> {
  const made = corpus.families.flatMap((family) => family.made);
  const seconds: number[] = [];
  for (let rep = 0; rep < reps; rep++) seconds.push(await runOurs(setting, 'all', { ...corpus, made }, rep));
  return cell(ALL, null, made, { ours: seconds, beside: [] });
}

async function measureFamily(setting: Setting, family: CorpusFamily, reps: number): Promise<FamilyCell> {
  const { name, harness } = family;
  const seconds: FamilyCell['seconds'] = { ours: [], beside: [] };
  for (let rep = 0; rep < reps; rep++) {
    const ours = async (): Promise<void> => {
      seconds.ours.push(await runOurs(setting, name, family, rep));
    };
    const theirs = async (): Promise<void> => {
      if (harness) seconds.beside.push(await BESIDE[harness](setting, family, rep));
    };
    for (const one of rep % 2 === 0 ? [ours, theirs] : [theirs, ours]) await one();
    if (harness) await compare(setting, family, rep);
  }
  return cell(name, harness, family.made, seconds);
}

function cell(
  family: string,
  harness: CorpusFamily['harness'],
  made: readonly Prediction[],
  seconds: FamilyCell['seconds'],
): FamilyCell {
  const filled = made.filter(({ model_patch }) => model_patch !== '').length;
  const run = { ours: filled, beside: harness === 'swesmith' ? made.length : filled };
  const rate = (count: number, samples: readonly number[]): number =>
    rounded((60 * count) / median(samples), 1);
  const ratios = seconds.beside.map(
    (one, at) => run.ours / (seconds.ours[at] ?? Number.NaN) / (run.beside / one),
  );
  return {
    family,
    predictions: made.length,
    resolved: made.filter(({ kind }) => kind === 'gold').length,
    beside: harness ? VERSIONS[harness] : null,
    seconds,
    run,
    evaluations_a_minute: {
      ours: rate(run.ours, seconds.ours),
      beside: harness ? rate(run.beside, seconds.beside) : null,
    },
    ours_over_beside: harness ? rounded(median(ratios), 2) : null,
  };
}

type Given = { dataset: string; predictions: string; made: readonly Prediction[] };

const home = ({ folder }: Setting, name: string): string => join(folder, 'ours', name);

/** Runs one command. @throws Error unless each verdict is the expected one */
async function runOurs(setting: Setting, name: string, given: Given, rep: number): Promise<number> {
  const at = home(setting, name);
  await mkdir(at, { recursive: true });
  const output = join(at, `r${rep}.jsonl`);
  const args = words`eval --dataset ${given.dataset} --predictions ${given.predictions} --run-id r${rep}
    --runtime docker --max-workers ${setting.workers}
    --logs-dir ${join(at, 'logs/run_evaluation')} --report-dir ${at} --output ${output}`;
  const env = { SWEFARM_STATE_DIR: join(at, 'state'), SWEFARM_SCRATCH_DIR: join(at, 'scratch') };
  const from = performance.now();
  const { code, stderr } = await runCommand('swefarm', args, env);
  const seconds = since(from);
  if (code !== 0) throw new Error(`swefarm eval of ${name} ended with ${code}: ${stderr}`);
  const verdicts = await readLines<Verdict>(output);
  const found = new Map(verdicts.map(({ instance_id, resolved }) => [instance_id, resolved]));
  for (const { instance_id, kind } of given.made) {
    const resolved = found.get(instance_id) ?? false;
    if (resolved !== (kind === 'gold'))
      throw new Error(`${instance_id}: ${kind} ${resolved ? 'resolves it' : 'does not resolve it'}`);
  }
  return seconds;
}

const since = (from: number): number => rounded((performance.now() - from) / 1000, 1);

type Beside = (setting: Setting, family: CorpusFamily, rep: number) => Promise<number>;

const folderOf = ({ folder }: Setting, name: string): string => join(folder, 'beside', name);

const timed = async (work: Promise<void>, from = performance.now()): Promise<number> => {
  await work;
  return since(from);
};

const BESIDE: Readonly<Record<keyof typeof VERSIONS, Beside>> = {
  swebench: (setting, { name, dataset, predictions }, rep) => {
    const main = swebenchArguments({
      ...{ dataset, predictions, workers: setting.workers },
      ...{ run: `r${rep}`, namespace: NAMESPACE },
    });
    return timed(runHarness(setting.python, 'swebench', main, dataset, folderOf(setting, name)));
  },
  swesmith: (setting, { name, dataset, predictions }, rep) => {
    const main = {
      run_id: `r${rep}`,
      workers: setting.workers,
      predictions_path: predictions,
      dataset_path: dataset,
    };
    return timed(runHarness(setting.python, 'swesmith', main, dataset, folderOf(setting, name)));
  },
};

/**
 * Compares each report.json as a whole. For an empty patch it compares the verdict only: swesmith runs its tests, and `swefarm eval`
 * does not.
 */
async function compare(setting: Setting, { name, harness, made }: CorpusFamily, rep: number): Promise<void> {
  for (const { instance_id, kind } of made) {
    const model = harness === 'swebench' ? ['bench'] : [];
    const file = join('logs/run_evaluation', `r${rep}`, ...model, instance_id, 'report.json');
    const [ours, theirs] = await Promise.all([
      reportAt(join(home(setting, name), file)),
      reportAt(join(folderOf(setting, name), file)),
    ]);
    const isEqual =
      kind === 'nothing'
        ? resolves(ours, instance_id) === resolves(theirs, instance_id)
        : isDeepStrictEqual(ours, theirs);
    if (!isEqual) {
      const shown = [ours, theirs].map((report) => JSON.stringify(report)?.slice(0, 300));
      throw new Error(
        `${instance_id} (${kind}): ours reports ${shown[0]}, the harness beside it ${shown[1]}`,
      );
    }
  }
}

type Report = { resolved?: boolean; [id: string]: unknown } | null;

/** Reports of swebench are objects by instance id. */
const resolves = (report: Report, id: string): boolean =>
  ((report?.[id] as Report) ?? report)?.resolved === true;

const reportAt = async (path: string): Promise<Report> =>
  existsSync(path) ? JSON.parse(await readFile(path, 'utf8')) : null;

export function printEval({ cells, reps, workers, skipped }: EvalPart): string {
  const head = ['family', 'predictions', 'resolved', 'ours/beside', 'ours /min', 'beside /min', 'beside'];
  const rows = cells.map(({ family, predictions, resolved, beside, ...one }) => [
    family,
    predictions,
    resolved,
    one.ours_over_beside ?? '-',
    one.evaluations_a_minute.ours,
    one.evaluations_a_minute.beside ?? '-',
    beside ?? (family === ALL ? '-' : 'no harness: PyPI has none for this family'),
  ]);
  return [
    `Predictions of four dataset families, gold, empty, unrelated and broken, ${workers} at once (${reps} rounds), whole commands; all verdicts are equal`,
    table([head, ...rows]),
    ...skippedLines(skipped),
  ].join('\n');
}
