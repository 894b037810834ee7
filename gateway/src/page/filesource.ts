/** Reads the page's data from a result file, from the artifacts of the file's lines, and from the dataset if that is readable. */
import { dirname, resolve } from 'node:path';
import { readDataset } from '@swefarm/datasets';
import {
  type ArtifactContent,
  errorMessage,
  type Farm,
  type Instance,
  type RunRecord,
  startedRollouts,
  UsageError,
} from '@swefarm/shared';
import type { OutputLine } from '@swefarm/trajectories';
import { artifactOfLine, countNames, meansOf, readOutputRun, tally } from '@swefarm/trajectories';
import { createCache } from './cache.ts';
import type {
  PageDetail,
  PageLive,
  PageOverview,
  PageRollout,
  PageRun,
  PageSource,
  PageTrends,
  RunStatus,
} from './data.ts';
import { indexLines, type LineIndex } from './lineindex.ts';
import { pageResult, pageRollout } from './records.ts';
import { Trend, trendsOf } from './trends.ts';

export type FileOptions = {
  /** Dataset with problem statements and golden patches; null: the dataset of the file's run, if the dataset is readable. */
  dataset: string | null;
  /** Connects to the Redis of the farm, for artifacts that are stored there. */
  farm: () => Promise<Farm>;
};

/** `instances`: position of each instance, by instance id. */
type FileRun = { instances: Map<string, number>; rollouts: PageRollout[]; first: OutputLine };

const ARTIFACTS = 6;
/** Cursor after the last line. */
const END = 'end';

/** Throws UsageError if the file is unreadable or is no output of swefarm. */
export async function readFileSource(path: string, options: FileOptions): Promise<PageSource> {
  const runs = new Map<string, FileRun>();
  const lines = await indexLines(path, (line) => addLine(runs, line));
  const record = (await readOutputRun(path).catch(() => null))?.record ?? null;
  return new FileSource(path, runs, lines, record, options);
}

class FileSource implements PageSource {
  readonly #path: string;
  readonly #runs: ReadonlyMap<string, FileRun>;
  readonly #lines: LineIndex;
  readonly #record: RunRecord | null;
  readonly #readArtifact: (rolloutId: string) => Promise<ArtifactContent | null>;
  readonly #dataset: (key: string) => Promise<Map<string, Instance>>;

  constructor(
    path: string,
    runs: ReadonlyMap<string, FileRun>,
    lines: LineIndex,
    record: RunRecord | null,
    options: FileOptions,
  ) {
    this.#path = path;
    this.#runs = runs;
    this.#lines = lines;
    this.#record = record;
    this.#readArtifact = createCache(async (rolloutId) => {
      const line = await lines.read(rolloutId);
      return await artifactOfLine(withResolvedCopy(line, path), options.farm);
    }, ARTIFACTS);
    this.#dataset = createCache(() => instancesOf(options.dataset, record), 1);
  }

  async overview(): Promise<PageOverview> {
    const runs = [...this.#runs].map(([id, run]) => statusOf(id, run, this.#record));
    return { kind: 'file', name: this.#path, runs, queue: null, workers: [] };
  }

  async run(runId: string, after: string): Promise<PageRun> {
    const run = this.#requireRun(runId);
    return {
      run: statusOf(runId, run, this.#record),
      instances: [...run.instances.keys()],
      rollouts: after === END ? [] : run.rollouts,
      running: [],
      cursor: END,
    };
  }

  async trends(chosen: readonly string[] | null, each: boolean): Promise<PageTrends> {
    const { runs } = await this.overview();
    const listed = runs.map(({ run_id, created_at, model }) => ({ run_id, created_at, model }));
    return await trendsOf(listed, chosen, each, async (runId) => {
      const trend = new Trend();
      for (const rollout of this.#requireRun(runId).rollouts) trend.add(rollout);
      return trend;
    });
  }

  async rollout(rolloutId: string): Promise<PageDetail> {
    const line = await this.#lines.read(rolloutId);
    const { instances, rollouts } = this.#requireRun(line.run_id);
    const instance = (await this.#dataset('')).get(line.instance_id);
    const { content, missing } = await this.#readArtifact(rolloutId).then(
      (found) => ({ content: found, missing: found ? null : 'this rollout has no trajectory' }),
      (error: unknown) => ({ content: null, missing: errorMessage(error) }),
    );
    return {
      rollout_id: rolloutId,
      instance_id: line.instance_id,
      siblings: rollouts
        .filter((one) => one.instance === instances.get(line.instance_id))
        .map((one) => one.index)
        .sort((a, b) => a - b),
      attempts: [],
      live: null,
      problem: instance?.problem_statement ?? null,
      gold: instance?.patch || null,
      ...pageResult(line, content, missing),
    };
  }

  artifact(rolloutId: string): Promise<ArtifactContent | null> {
    return this.#readArtifact(rolloutId);
  }

  async live(rolloutId: string): Promise<PageLive> {
    await this.#lines.read(rolloutId);
    return { turns: [], cursor: END, live: null, finished: true };
  }

  #requireRun(runId: string): FileRun {
    const run = this.#runs.get(runId);
    if (!run) throw new UsageError(`${this.#path}: no run ${runId}`, { code: 'run_unknown' });
    return run;
  }
}

/** Resolves the path of a copied artifact in the folder of the output, which is usually the folder in which the collector ran. */
const withResolvedCopy = (line: OutputLine, path: string): OutputLine =>
  line.artifact_file === undefined
    ? line
    : { ...line, artifact_file: resolve(dirname(path), line.artifact_file) };

function addLine(runs: Map<string, FileRun>, line: OutputLine): void {
  const run: FileRun = runs.get(line.run_id) ?? { instances: new Map(), rollouts: [], first: line };
  runs.set(line.run_id, run);
  const position = run.instances.get(line.instance_id) ?? run.instances.size;
  run.instances.set(line.instance_id, position);
  run.rollouts.push(pageRollout(line, position));
}

function statusOf(
  run_id: string,
  { instances, rollouts, first }: FileRun,
  record: RunRecord | null,
): RunStatus {
  const own = record?.run_id === run_id ? record : null;
  const { judged, resolved, scored, failed, cancelled, ...sums } = tally(rollouts);
  const { reward_mean, turns_mean } = meansOf({ judged, resolved, scored, ...sums });
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
    scored,
    failed,
    cancelled,
    paused: null,
    turns_mean,
    reward_mean,
    failures: countNames(rollouts.flatMap(({ failure }) => (failure === null ? [] : [failure]))),
  };
}

/** Returns the instances of the dataset by id. Only a dataset that the user names must be readable. */
async function instancesOf(named: string | null, record: RunRecord | null): Promise<Map<string, Instance>> {
  const path = named ?? record?.dataset.path;
  if (path === undefined) return new Map();
  try {
    const { instances } = await readDataset(path, { skipUngradable: true });
    return new Map(instances.map((instance) => [instance.instance_id, instance]));
  } catch (error) {
    if (named !== null) throw error;
    return new Map();
  }
}
