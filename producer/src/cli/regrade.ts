/** `swefarm regrade`: applies another grader or reward table to stored results, without running anything. */
import { mkdir, open, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { readDataset } from '@swefarm/datasets';
import {
  type GraderChoice,
  officialReport,
  REWARD_TABLE,
  type RewardOverrides,
  weightWarnings,
} from '@swefarm/grading';
import {
  type ArtifactContent,
  EvaluationConfig,
  encodeArtifact,
  errorMessage,
  type Instance,
  type Report,
  RewardChoice,
  RewardWeights,
  SwefarmError,
  UsageError,
} from '@swefarm/shared';
import {
  artifactOfLine,
  encodeLine,
  type OutputLine,
  type RewardRule,
  readOutputRun,
  requireNewOutput,
  summariseReport,
  terminalSafe,
  writeOutputRun,
  writing,
} from '@swefarm/trajectories';
import { describeChange } from '../regrade/changes.ts';
import { type RewardRules, regradeLog, rewardLineAgain } from '../regrade/regrade.ts';
import { isFolder, logOfArtifact, outputLines, treeFolders } from '../regrade/sources.ts';
import { choice, command, list, text, type Values } from './declare.ts';
import { EXIT } from './exit.ts';
import { lazyFarm } from './farm.ts';
import { FARM, producerConfig, ROWS, rowOptions } from './options.ts';
import { listenForStop } from './stop.ts';
import { printStatus } from './terminal.ts';

const regrading = {
  '--dataset <file>': text('dataset of the run; without it results are only rewarded, not graded'),
  '--output <file>': text('file for the new lines (default: beside the source)'),
  '--copy-artifacts <dir>': text('write artifacts with the new reports into this folder'),
  '--grader <name>': choice(
    'whose rules decide (default: as before)',
    EvaluationConfig.shape.grader.unwrap().options,
  ),
  '--reward-override <row=choice>': list(
    'zero, grade or none for a row of the reward table (repeatable; default: as the run was submitted)',
  ),
  '--reward <weights>': text(
    'weights of the parts of the reward, such as resolved=1,f2p=0.5 (default: as the run was submitted)',
  ),
  ...ROWS,
  ...FARM,
};
type RegradeValues = Values<typeof regrading>;

export const regrade = command({
  arguments: { '<source>': "an output file of rollout or eval, or a folder of the harness's logs" },
  options: regrading,
  example: 'swefarm regrade results.jsonl --dataset rows.jsonl --output regraded.jsonl',
  async run(o, { source }) {
    const { draining: signal } = listenForStop();
    const tree = await isFolder(source);
    if (o.dataset === undefined && (tree || o.grader !== undefined)) {
      throw new UsageError('grading logs again needs the rows: add --dataset FILE');
    }
    if (o.reward !== undefined) requireWeights(o.reward);
    const path = o.output ?? `${resolve(source)}.regraded.jsonl`;
    await requireNewOutput(path);
    const instances = await readInstances(o, signal);
    const tally = { seen: 0, graded: 0, changed: 0, problems: 0 };
    const grader = o.grader ?? null;
    await using file = await writing(path, () => open(path, 'w'));
    const write = (text: string): Promise<void> => writing(path, () => file.appendFile(text));
    const work = { source, o, instances, grader, tally, write, signal };
    await (tree ? regradeTree(work) : regradeOutput(work, path));
    const { seen, graded, changed, problems } = tally;
    const lost = problems > 0 ? `, ${problems} could not be` : '';
    printStatus(`${seen} read, ${graded} graded again, ${changed} changed${lost}`);
    printStatus(`results: ${path}`);
    if (signal.aborted) return EXIT.interrupted;
    return problems > 0 ? EXIT.someNotJudged : EXIT.allJudged;
  },
});

type Work = {
  source: string;
  o: RegradeValues;
  instances: ReadonlyMap<string, Instance> | null;
  /** Grader to use; null: the earlier grader of each result. */
  grader: GraderChoice | null;
  write: (text: string) => Promise<void>;
  tally: { seen: number; graded: number; changed: number; problems: number };
  signal: AbortSignal;
};

async function readInstances(o: RegradeValues, signal: AbortSignal): Promise<Map<string, Instance> | null> {
  if (o.dataset === undefined) return null;
  const { instances } = await readDataset(o.dataset, { ...rowOptions(o), skipUngradable: true, signal });
  return new Map(instances.map((instance) => [instance.instance_id, instance]));
}

async function regradeOutput(work: Work, path: string): Promise<void> {
  const { source, o, tally } = work;
  const run = await readOutputRun(source);
  const was: RewardRule = run?.record.reward ?? {};
  const now = {
    overrides: givenOverrides(o.rewardOverride) ?? was.overrides ?? {},
    weights: o.reward ?? was.weights ?? null,
  };
  const rules = { was, now };
  for (const warning of weightWarnings(o.reward ?? null)) printStatus(`swefarm: ${warning}`);
  if (run) {
    const reward = { ...run.record.reward, ...now, table: REWARD_TABLE.name, hash: REWARD_TABLE.hash };
    // `evaluation` is left out, so that `swefarm eval` does not resume the new file.
    await writeOutputRun(path, { ...run, record: { ...run.record, reward }, evaluation: undefined });
  }
  await using late = lazyFarm(() => producerConfig(o));
  const read = (line: OutputLine) => artifactOfLine(line, source, late.farm);
  for await (const line of outputLines(source)) {
    if (work.signal.aborted) return;
    tally.seen += 1;
    const name = `${line.instance_id}.${line.rollout_index}`;
    const fresh = await trying(work, name, () => regradeLine(line, work, rules, read));
    await work.write(`${encodeLine(fresh ?? line)}\n`);
    if (fresh) noteChange(work, describeChange(name, line, fresh));
  }
}

async function regradeLine(
  line: OutputLine,
  work: Work,
  rules: RewardRules,
  read: (line: OutputLine) => Promise<ArtifactContent | null>,
): Promise<OutputLine> {
  const { instances, grader, tally } = work;
  const content = instances ? await read(line) : null;
  const stored = content && logOfArtifact(content);
  let report: Report | null = null;
  if (instances && stored) {
    const instance = instances.get(line.instance_id);
    if (!instance) throw new UsageError('the dataset has no such instance');
    const before = content.report;
    const asBefore = instance.plan ? 'auto' : ((before?.grader ?? 'auto') as GraderChoice);
    report = regradeLog(instance, grader ?? asBefore, stored, before);
    tally.graded += 1;
  } else if (instances && line.report && line.report.evaluation !== 'not_run') {
    throw new UsageError('no log is stored');
  }
  const fresh = rewardLineAgain(line, report, rules);
  if (!fresh) throw new UsageError('the line has no facts to reward: an older version wrote it');
  const { copyArtifacts: folder } = work.o;
  if (folder === undefined || !report || !content) return fresh;
  await mkdir(folder, { recursive: true });
  const artifact_file = join(folder, `${line.rollout_id}.json.gz`);
  await writeFile(artifact_file, await encodeArtifact({ ...content, report }));
  return { ...fresh, artifact_file };
}

/** Runs `action`. If the item cannot be graded, prints the reason and returns null. */
async function trying<T>({ tally }: Work, name: string, action: () => Promise<T>): Promise<T | null> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof SwefarmError) || error.retryable) throw error;
    tally.problems += 1;
    printStatus(`${name}: not graded again: ${terminalSafe(errorMessage(error))}`);
    return null;
  }
}

async function regradeTree(work: Work): Promise<void> {
  const { source, tally } = work;
  for await (const folder of treeFolders(source)) {
    if (work.signal.aborted) return;
    tally.seen += 1;
    const name = `${folder.model}/${folder.instance_id}`;
    const { instance_id, model, resolved, stored } = folder;
    const report = await trying(work, name, async () => {
      const instance = work.instances?.get(instance_id);
      if (!instance) throw new UsageError('the dataset has no such instance');
      if (!stored) throw new UsageError('the folder has no log');
      return regradeLog(instance, work.grader ?? 'auto', stored, null);
    });
    if (!report) continue;
    tally.graded += 1;
    const official = officialReport(report, {
      log: stored?.log ?? null,
      model,
      timeoutSeconds: stored?.facts.timeout_seconds ?? 0,
    });
    // If the harness writes no report.json for the log, there is no verdict.
    const now = official === null ? null : report.resolved;
    const line = {
      instance_id,
      model_name_or_path: model,
      resolved_before: resolved,
      resolved: now,
      report: summariseReport(report),
      official,
    };
    await work.write(`${JSON.stringify(line)}\n`);
    const before = { outcome: 'judged' as const, resolved, reward: null, reward_row: null, report: null };
    noteChange(work, describeChange(name, before, { ...before, resolved: now }));
  }
}

function noteChange({ tally }: Work, change: string | null): void {
  if (change === null) return;
  tally.changed += 1;
  printStatus(change);
}

/** Throws UsageError for unreadable weights. */
function requireWeights(text: string): void {
  const read = RewardWeights.safeParse(text);
  if (!read.success) throw new UsageError(`--reward: ${read.error.issues[0]?.message}`);
}

function givenOverrides(given: readonly string[] | undefined): RewardOverrides | null {
  if (given === undefined) return null;
  return Object.fromEntries(
    given.map((pair) => {
      const [row = '', choice] = pair.split('=');
      const read = RewardChoice.safeParse(choice);
      if (!read.success) {
        throw new UsageError(`--reward-override ${pair}: expected row=zero, row=grade or row=none`);
      }
      return [row, read.data];
    }),
  );
}
