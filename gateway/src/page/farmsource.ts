/** Reads the page's data from a farm. */
import {
  type ArtifactContent,
  errorMessage,
  type Farm,
  type LiveRollout,
  parseRolloutId,
  type Result,
  type RunRecord,
  SwefarmError,
  startedGroup,
} from '@swefarm/shared';
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
import { pageResult, pageRollout, pageUnreadable } from './records.ts';
import { farmStatus, knownRun, runStatus } from './status.ts';
import { Trend, trendsOf } from './trends.ts';

const BATCH = 1000;
/** Maximum number of decoded artifacts in memory, enough for three pages that show two rollouts each. */
const ARTIFACTS = 6;
/** Maximum number of trends in memory; a trend takes some 100 kB. */
const TRENDS = 200;
/** Maximum number of runs of branches in an answer. The newest runs are returned. */
const BRANCH_RUNS = 200;
/** Milliseconds for which the list of runs is cached for branches. */
const LISTED_MS = 5_000;

/** `cursor`: position after the results that are in the trend. */
type KnownTrend = { trend: Trend; cursor: string; reading: Promise<void> };

export class FarmSource implements PageSource {
  readonly #farm: Farm;
  readonly #readArtifact: (locator: string) => Promise<ArtifactContent | null>;
  readonly #trendOf = createCache(
    async (): Promise<KnownTrend> => ({ trend: new Trend(), cursor: '0', reading: Promise.resolve() }),
    TRENDS,
  );

  /** All runs of branches, oldest first, by the period of {@link LISTED_MS} in which they were read. */
  readonly #branchRuns: (period: string) => Promise<BranchRun[]>;

  constructor(farm: Farm) {
    this.#farm = farm;
    this.#readArtifact = createCache((locator) => farm.artifacts.read(locator), ARTIFACTS);
    this.#branchRuns = createCache(async () => branchRunsOf(await farm.runs.list()), 1);
  }

  async overview(): Promise<PageOverview> {
    const { redis, runs, queue, workers } = await farmStatus(this.#farm);
    return { kind: 'farm', name: redis, runs, queue, workers };
  }

  async run(runId: string, after: string): Promise<PageRun> {
    const farm = this.#farm;
    const record = await knownRun(farm, runId);
    const instances = (await farm.runs.instanceIds(runId)).sort();
    // The running rollouts are read before the results, so that a rollout that is committed in between is in one of the lists.
    const running = await this.#running(runId);
    const { rollouts, cursor } = await this.#readResults(runId, instances, after);
    const run = runStatus(record, await farm.results.counts(runId));
    return { run, instances, rollouts, running, cursor };
  }

  async branches(id: string): Promise<PageBranches> {
    const { branch_of: of = null } = await knownRun(this.#farm, runOf(id));
    const period = String(Math.floor(Date.now() / LISTED_MS));
    const below = branchesBelow(id, await this.#branchRuns(period)).slice(-BRANCH_RUNS);
    const branches = await Promise.all(
      below.map(async ({ run_id, of: rollout_id, turn, group_size }) => {
        const { instanceId: instance_id } = parseRolloutId(rollout_id);
        const { rollouts } = await this.#readResults(run_id, [instance_id], '0');
        return { rollout_id, turn, run_id, instance_id, group_size, rollouts };
      }),
    );
    return { of, branches };
  }

  async trends(chosen: readonly string[] | null, each: boolean): Promise<PageTrends> {
    const records = await this.#farm.runs.list();
    const runs = records.map(({ run_id, created_at, policy }) => ({
      ...{ run_id, created_at, model: policy?.model ?? null },
    }));
    return await trendsOf(runs, chosen, each, async (runId) => {
      await knownRun(this.#farm, runId);
      const known = await this.#trendOf(runId);
      // Reads of one run do not overlap. After a failed read, the next read continues at the cursor.
      known.reading = known.reading.catch(() => undefined).then(() => this.#updateTrend(runId, known));
      await known.reading;
      return known.trend;
    });
  }

  async rollout(rolloutId: string): Promise<PageDetail> {
    const farm = this.#farm;
    const { runId, instanceId } = parseRolloutId(rolloutId);
    const [record, { result, problem }, attempts, instance] = await Promise.all([
      knownRun(farm, runId),
      this.#readResult(rolloutId),
      farm.journal.read(rolloutId),
      farm.runs.getInstance(runId, instanceId),
    ]);
    if (!instance) {
      throw new SwefarmError('bad_rollout_id', `rollout ${rolloutId}: run ${runId} has no such instance`);
    }
    const { content, missing } = await this.#contentOf(result);
    return {
      rollout_id: rolloutId,
      instance_id: instanceId,
      siblings: Array.from({ length: startedGroup(record) }, (_, index) => index),
      attempts,
      live: result || problem ? null : await this.#liveRollout(rolloutId),
      problem: instance.problem_statement,
      gold: instance.patch || null,
      ...pageResult(result, content, problem ?? missing),
    };
  }

  async artifact(rolloutId: string): Promise<ArtifactContent | null> {
    const { result } = await this.#readResult(rolloutId);
    return result?.artifact ? await this.#readArtifact(result.artifact) : null;
  }

  async live(rolloutId: string, after: string): Promise<PageLive> {
    const [live, { turns, last_id }, { result, problem }] = await Promise.all([
      this.#liveRollout(rolloutId),
      this.#farm.live.turns(rolloutId, after),
      this.#readResult(rolloutId),
    ]);
    return { turns, cursor: last_id, live, finished: result !== null || problem !== null };
  }

  /** Reads all results after the cursor, including unreadable ones. */
  async #readResults(
    runId: string,
    instances: readonly string[],
    after: string,
  ): Promise<{ rollouts: PageRollout[]; cursor: string }> {
    const positions = new Map(instances.map((id, position) => [id, position]));
    const rollouts: PageRollout[] = [];
    let cursor = after;
    for await (const batch of this.#batchesAfter(runId, after)) {
      for (const { result } of batch.results) {
        const position = positions.get(result.instance_id);
        if (position !== undefined) rollouts.push(pageRollout(result, position));
      }
      for (const entry of batch.unreadable) {
        if (entry.rollout_id === null) continue;
        const { instanceId, index } = parseRolloutId(entry.rollout_id);
        const position = positions.get(instanceId);
        if (position !== undefined) rollouts.push(pageUnreadable(entry, position, index));
      }
      cursor = batch.last_id;
    }
    return { rollouts, cursor };
  }

  /** Adds the results since the last read. */
  async #updateTrend(runId: string, known: KnownTrend): Promise<void> {
    for await (const { results, unreadable, last_id } of this.#batchesAfter(runId, known.cursor)) {
      for (const { result } of results) known.trend.add(pageRollout(result, 0));
      for (const entry of unreadable) known.trend.add(pageUnreadable(entry, 0, 0));
      known.cursor = last_id;
    }
  }

  async *#batchesAfter(runId: string, after: string) {
    for (let cursor = after; ; ) {
      const batch = await this.#farm.results.read(runId, cursor, { count: BATCH });
      yield batch;
      if (batch.results.length + batch.unreadable.length < BATCH) return;
      cursor = batch.last_id;
    }
  }

  /** Returns the result of a rollout. `problem`: why the result is unreadable. */
  async #readResult(rolloutId: string): Promise<{ result: Result | null; problem: string | null }> {
    try {
      return { result: await this.#farm.results.get(rolloutId), problem: null };
    } catch (error) {
      if (!(error instanceof SwefarmError) || error.code !== 'result_unreadable') throw error;
      return { result: null, problem: error.message };
    }
  }

  /** Reads the artifact of a result. `missing`: why there is no artifact. */
  async #contentOf(
    result: Result | null,
  ): Promise<{ content: ArtifactContent | null; missing: string | null }> {
    if (result === null) return { content: null, missing: null };
    const none = 'this rollout has no artifact: it ended before anything was stored';
    if (result.artifact === null) return { content: null, missing: none };
    try {
      return { content: await this.#readArtifact(result.artifact), missing: null };
    } catch (error) {
      return { content: null, missing: errorMessage(error) };
    }
  }

  async #running(runId: string): Promise<LiveRollout[]> {
    const workers = await this.#farm.registry.list();
    return await this.#farm.live.running(
      workers.map(({ worker }) => worker),
      runId,
    );
  }

  async #liveRollout(rolloutId: string): Promise<LiveRollout | null> {
    const running = await this.#running(parseRolloutId(rolloutId).runId);
    return running.find((one) => one.rollout_id === rolloutId) ?? null;
  }
}

/** Returns the runs of branches in the reverse order. */
const branchRunsOf = (runs: readonly RunRecord[]): BranchRun[] =>
  runs
    .flatMap(({ run_id, group_size, branch_of: of }) =>
      of ? [{ run_id, of: of.rollout_id, turn: of.turn, group_size }] : [],
    )
    .reverse();
