/** The page's view of a result file alone: its lines, the artifacts they name, and the dataset when it is at hand. */
import { dirname, resolve } from 'node:path';
import {
  errorMessage,
  type Farm,
  type Instance,
  type RunRecord,
  startedRollouts,
  UsageError,
} from '@swefarm/shared';
import { readDataset } from '../datasets/read.ts';
import { artifactOfLine } from '../output/artifact.ts';
import type { OutputLine } from '../output/line.ts';
import { readOutputRun } from '../output/output.ts';
import { countNames, meansOf, tally } from '../output/tally.ts';
import type { RunStatus } from '../view/status.ts';
import type { PageDetail, PageRollout, PageSource } from './data.ts';
import { indexLines } from './lines.ts';
import { pageResult, pageRollout, pageTokens, remember } from './view.ts';

export type FileOptions = {
  /** Where problems and gold patches are read from; null: where the file's run read its dataset, if that is there. */
  dataset: string | null;
  /** Opened once an artifact lies in Redis. */
  farm: () => Promise<Farm>;
};

type FileRun = { instances: Map<string, number>; rollouts: PageRollout[]; first: OutputLine };

const ARTIFACTS_KEPT = 6;
/** What `after` is once all lines were told. */
const END = 'end';

/** Throws UsageError when the file cannot be read or is no output. */
export async function fileSource(path: string, options: FileOptions): Promise<PageSource> {
  const runs = new Map<string, FileRun>();
  const lines = await indexLines(path, (line) => addLine(runs, line));
  const record = (await readOutputRun(path).catch(() => null))?.record ?? null;
  const artifact = remember(async (rolloutId) => {
    const line = await lines.read(rolloutId);
    const { artifact_file: copy } = line;
    // A copy that was named relatively lies where the collector was started, most often beside the output.
    const artifact_file = copy === undefined ? {} : { artifact_file: resolve(dirname(path), copy) };
    return await artifactOfLine({ ...line, ...artifact_file }, options.farm);
  }, ARTIFACTS_KEPT);
  const dataset = remember(() => instancesOf(options.dataset, record), 1);
  const runOf = (runId: string): FileRun => {
    const run = runs.get(runId);
    if (!run) throw new UsageError(`${path}: has no run ${runId}`, { code: 'run_unknown' });
    return run;
  };
  return {
    async overview() {
      const statuses = [...runs].map(([id, run]) => statusOf(id, run, record));
      return { kind: 'file', name: path, runs: statuses, queue: null, workers: [] };
    },
    async run(runId, after) {
      const run = runOf(runId);
      return {
        run: statusOf(runId, run, record),
        instances: [...run.instances.keys()],
        rollouts: after === END ? [] : run.rollouts,
        running: [],
        cursor: END,
      };
    },
    async rollout(rolloutId) {
      const line = await lines.read(rolloutId);
      const run = runOf(line.run_id);
      const instance = (await dataset('')).get(line.instance_id);
      const found = await artifact(rolloutId).then(
        (content) => ({ content, missing: content ? null : 'no trajectory was kept for this rollout' }),
        (error: unknown) => ({ content: null, missing: errorMessage(error) }),
      );
      return {
        rollout_id: rolloutId,
        instance_id: line.instance_id,
        siblings: run.rollouts
          .filter((one) => one.instance === run.instances.get(line.instance_id))
          .map((one) => one.index)
          .sort((a, b) => a - b),
        attempts: [],
        live: null,
        problem: instance?.problem_statement ?? null,
        gold: instance?.patch || null,
        ...pageResult(line, found.content, found.missing),
      } satisfies PageDetail;
    },
    tokens: async (rolloutId, turn) => pageTokens(await artifact(rolloutId), turn),
    log: async (rolloutId) => (await artifact(rolloutId))?.test_log ?? null,
    async live(rolloutId) {
      await lines.read(rolloutId);
      return { turns: [], cursor: END, live: null, finished: true };
    },
  };
}

function addLine(runs: Map<string, FileRun>, line: OutputLine): void {
  const run: FileRun = runs.get(line.run_id) ?? { instances: new Map(), rollouts: [], first: line };
  runs.set(line.run_id, run);
  const place = run.instances.get(line.instance_id) ?? run.instances.size;
  run.instances.set(line.instance_id, place);
  run.rollouts.push(pageRollout(line, place));
}

/** The counts that a farm keeps itself, made from the lines. */
function statusOf(
  run_id: string,
  { instances, rollouts, first }: FileRun,
  record: RunRecord | null,
): RunStatus {
  const own = record?.run_id === run_id ? record : null;
  const { judged, resolved, failed, cancelled, ...sums } = tally(rollouts);
  const { reward_mean, turns_mean } = meansOf({ judged, resolved, ...sums });
  return {
    run_id,
    created_at: own?.created_at ?? new Date(first.finished_at).toISOString(),
    kind: own?.kind ?? 'collection',
    agent: own?.agent.type ?? '',
    model: own?.policy?.model ?? null,
    instances: own?.dataset.instances ?? instances.size,
    group_size: own?.group_size ?? Math.max(0, ...rollouts.map((one) => one.index)) + 1,
    rollouts: Math.max(rollouts.length, own ? startedRollouts(own) : 0),
    committed: rollouts.length,
    judged,
    resolved,
    failed,
    cancelled,
    paused: null,
    turns_mean,
    reward_mean,
    failures: countNames(rollouts.flatMap(({ failure }) => (failure === null ? [] : [failure]))),
  };
}

/** By id; none when the dataset was moved: gold is a comfort here, not a need. A dataset that was named must be readable. */
async function instancesOf(named: string | null, record: RunRecord | null): Promise<Map<string, Instance>> {
  const path = named ?? record?.dataset.path;
  if (path === undefined) return new Map();
  try {
    const { instances } = await readDataset(path);
    return new Map(instances.map((instance) => [instance.instance_id, instance]));
  } catch (error) {
    if (named !== null) throw error;
    return new Map();
  }
}
