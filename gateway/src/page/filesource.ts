/** Reads the page's data from a result file, from the artifacts of the file's lines, and from the dataset if that is readable. */
import { createReadStream } from 'node:fs';
import { parseJsonLines, readDataset } from '@swefarm/datasets';
import {
  type ArtifactContent,
  errorMessage,
  type Farm,
  type Instance,
  type RunRecord,
  UsageError,
} from '@swefarm/shared';
import { artifactOfLine, countNames, type OutputLine, readOutputRun, tally } from '@swefarm/trajectories';
import { type BranchRun, branchesBelow, runOf } from './branches.ts';
import { createCache } from './cache.ts';
import type {
  PageBranches,
  PageDetail,
  PageLive,
  PageOverview,
  PageRollout,
  PageRun,
  PageSource,
  PageTrends,
} from './data.ts';
import { pageResult, pageRollout } from './records.ts';
import { recordStatus, statusOf } from './status.ts';
import { Trend, trendsOf } from './trends.ts';

export type FileOptions = {
  /** Dataset with problem statements and golden patches; null: the dataset of the file's run, if the dataset is readable. */
  dataset: string | null;
  /** Connects to the Redis of the farm, for artifacts that are stored there. */
  farm: () => Promise<Farm>;
};

type Position = { at: number; length: number };
/** Stored part of a line; the file may be larger than memory. `bytes`: position of the whole line in the file. */
type Line = Pick<OutputLine, 'run_id' | 'instance_id' | 'branch_of'> & {
  rollout: PageRollout;
  bytes: Position;
};
/** `lines`: by rollout id. `record`: the run of the file; null: unknown. */
type ResultFile = { path: string; lines: Map<string, Line>; record: RunRecord | null };

const ARTIFACTS = 6;
/** Cursor after the last line. */
const END = 'end';

/** Throws UsageError if the file is unreadable or is no output of swefarm. */
export async function readFileSource(path: string, options: FileOptions): Promise<PageSource> {
  const lines = new Map<string, Line>();
  try {
    for await (const { line, bytes } of readLines(path)) {
      const { run_id, instance_id, branch_of } = line;
      // A rollout with several lines counts once, with its last line.
      lines.set(line.rollout_id, { run_id, instance_id, branch_of, rollout: pageRollout(line, 0), bytes });
    }
  } catch (error) {
    throw new UsageError(`${path}: not a readable output of swefarm: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  const record = (await readOutputRun(path).catch(() => null))?.record ?? null;
  return new FileSource({ path, lines, record }, options);
}

/** Yields the lines of an output, or of the bytes `start` to `end`. Omits a damaged last line, which a collector may be writing. */
async function* readLines(
  path: string,
  range: { start?: number; end?: number } = {},
): AsyncGenerator<{ line: OutputLine; bytes: Position }> {
  let damaged: string | null = null;
  for await (const read of parseJsonLines(createReadStream(path, range))) {
    if (damaged !== null) throw new Error(`${damaged} is damaged`);
    if ('problem' in read) {
      damaged = read.where;
      continue;
    }
    // A row in Gym's form contains the line under the key `swefarm`.
    const line = (read.value.swefarm ?? read.value) as OutputLine;
    if (typeof line.rollout_id !== 'string') throw new Error('its lines are not results');
    yield { line, bytes: read.bytes };
  }
}

class FileSource implements PageSource {
  readonly #file: ResultFile;
  readonly #runs: ReadonlyMap<string, Line[]>;
  readonly #readArtifact: (rolloutId: string) => Promise<ArtifactContent | null>;
  readonly #dataset: (key: string) => Promise<Map<string, Instance>>;

  constructor(file: ResultFile, options: FileOptions) {
    this.#file = file;
    this.#runs = Map.groupBy(file.lines.values(), ({ run_id }) => run_id);
    this.#readArtifact = createCache(async (rolloutId) => {
      return await artifactOfLine(await this.#readLine(rolloutId), file.path, options.farm);
    }, ARTIFACTS);
    this.#dataset = createCache(() => instancesOf(options.dataset, file.record), 1);
  }

  async overview(): Promise<PageOverview> {
    const runs = [...this.#runs.keys()].map((id) => this.#readRun(id).run);
    return { kind: 'file', name: this.#file.path, runs, queue: null, workers: [] };
  }

  async run(runId: string, after: string): Promise<PageRun> {
    const run = this.#readRun(runId);
    return { ...run, rollouts: after === END ? [] : run.rollouts, running: [], cursor: END };
  }

  async branches(id: string): Promise<PageBranches> {
    const { run } = this.#readRun(runOf(id));
    const all = [...this.#runs].flatMap(([run_id, lines]): BranchRun[] => {
      const of = lines[0]?.branch_of;
      return of ? [{ run_id, of: of.rollout_id, turn: of.turn, group_size: lines.length }] : [];
    });
    const branches = branchesBelow(id, all).map(({ of: rollout_id, ...one }) => {
      const lines = this.#runs.get(one.run_id) ?? [];
      const rollouts = lines.map(({ rollout }) => rollout);
      return { ...one, rollout_id, instance_id: lines[0]?.instance_id ?? '', rollouts };
    });
    return { of: this.#runs.get(run.run_id)?.[0]?.branch_of ?? null, branches };
  }

  async trends(chosen: readonly string[] | null, each: boolean): Promise<PageTrends> {
    const { runs } = await this.overview();
    const listed = runs.map(({ run_id, created_at, model }) => ({ run_id, created_at, model }));
    return await trendsOf(listed, chosen, each, async (runId) => {
      const trend = new Trend();
      for (const rollout of this.#readRun(runId).rollouts) trend.add(rollout);
      return trend;
    });
  }

  async rollout(rolloutId: string): Promise<PageDetail> {
    const { patch, report: _, ...line } = await this.#readLine(rolloutId);
    const lines = this.#runs.get(line.run_id) ?? [];
    const instance = (await this.#dataset('')).get(line.instance_id);
    const { content, missing } = await this.#readArtifact(rolloutId).then(
      (found) => ({ content: found, missing: found ? null : 'this rollout has no trajectory' }),
      (error: unknown) => ({ content: null, missing: errorMessage(error) }),
    );
    return {
      rollout_id: rolloutId,
      instance_id: line.instance_id,
      siblings: lines
        .filter((one) => one.instance_id === line.instance_id)
        .map((one) => one.rollout.index)
        .sort((a, b) => a - b),
      attempts: [],
      live: null,
      problem: instance?.problem_statement ?? null,
      gold: instance?.patch || null,
      ...pageResult(line, content, missing),
      patch: content ? content.patch : patch,
    };
  }

  artifact(rolloutId: string): Promise<ArtifactContent | null> {
    return this.#readArtifact(rolloutId);
  }

  async live(rolloutId: string): Promise<PageLive> {
    this.#requireLine(rolloutId);
    return { turns: [], cursor: END, live: null, finished: true };
  }

  async #readLine(rolloutId: string): Promise<OutputLine> {
    const { at, length } = this.#requireLine(rolloutId).bytes;
    const { path } = this.#file;
    const [read] = await Array.fromAsync(readLines(path, { start: at, end: at + length - 1 }));
    if (read?.line.rollout_id === rolloutId) return read.line;
    throw new UsageError(`${path}: the file has changed: start this command again`);
  }

  #requireLine(rolloutId: string): Line {
    const line = this.#file.lines.get(rolloutId);
    if (!line)
      throw new UsageError(`${this.#file.path}: no rollout ${rolloutId}`, { code: 'rollout_unknown' });
    return line;
  }

  #readRun(runId: string): Pick<PageRun, 'run' | 'instances' | 'rollouts'> {
    const lines = this.#runs.get(runId);
    const [first] = lines ?? [];
    if (!lines || !first)
      throw new UsageError(`${this.#file.path}: no run ${runId}`, { code: 'run_unknown' });
    const instances = [...new Set(lines.map((line) => line.instance_id))];
    const positions = new Map(instances.map((id, position) => [id, position]));
    const rollouts = lines.map(({ rollout, instance_id }) => ({
      ...rollout,
      instance: positions.get(instance_id) ?? 0,
    }));
    const { record } = this.#file;
    const guess = {
      ...{ run_id: runId, created_at: new Date(first.rollout.finished_at).toISOString(), kind: 'collection' },
      ...{ agent: '', model: null, instances: instances.length, rollouts: 0 },
      group_size: Math.max(0, ...rollouts.map((one) => one.index)) + 1,
    };
    const failures = countNames(rollouts.flatMap(({ failure }) => failure ?? []));
    const sums = { ...tally(rollouts), committed: rollouts.length, failures };
    const run = statusOf(record?.run_id === runId ? recordStatus(record) : guess, sums);
    return { run, instances, rollouts };
  }
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
