/** The page's view of a farm: runs, results and artifacts in Redis, and what runs now. */
import {
  type ArtifactContent,
  errorMessage,
  type Farm,
  type LiveRollout,
  parseRolloutId,
  type Result,
  SwefarmError,
  startedGroup,
} from '@swefarm/shared';
import { farmStatus, knownRun, runStatus } from '../view/status.ts';
import type { PageDetail, PageSource } from './data.ts';
import { pageResult, pageRollout, pageTokens, pageUnreadable, remember } from './view.ts';

const BATCH = 1000;
/** Decoded artifacts that are kept: a page with two siblings beside each other, for a few people. */
const ARTIFACTS_KEPT = 6;

export function farmSource(farm: Farm): PageSource {
  const artifact = remember((locator: string) => farm.artifacts.read(locator), ARTIFACTS_KEPT);
  const resultOf = async (rolloutId: string): Promise<{ result: Result | null; problem: string | null }> => {
    try {
      return { result: await farm.results.get(rolloutId), problem: null };
    } catch (error) {
      if (!(error instanceof SwefarmError) || error.code !== 'result_unreadable') throw error;
      return { result: null, problem: error.message };
    }
  };
  const content = async (rolloutId: string): Promise<ArtifactContent | null> => {
    const { result } = await resultOf(rolloutId);
    return result?.artifact ? await artifact(result.artifact) : null;
  };
  const running = async (runId: string): Promise<LiveRollout[]> => {
    const workers = await farm.registry.list();
    return await farm.live.running(
      workers.map(({ worker }) => worker),
      runId,
    );
  };
  const liveState = async (rolloutId: string): Promise<LiveRollout | null> => {
    const { runId } = parseRolloutId(rolloutId);
    return (await running(runId)).find((one) => one.rollout_id === rolloutId) ?? null;
  };
  return {
    async overview() {
      const { redis, runs, queue, workers } = await farmStatus(farm);
      return { kind: 'farm', name: redis, runs, queue, workers };
    },
    async run(runId, after) {
      const record = await knownRun(farm, runId);
      const instances = (await farm.runs.instanceIds(runId)).sort();
      const places = new Map(instances.map((id, at) => [id, at]));
      // Where the results end is asked before what runs: what is in neither was committed in between, and comes next time.
      const now = await running(runId);
      const rollouts = [];
      let cursor = after;
      for (;;) {
        const { results, unreadable, last_id } = await farm.results.read(runId, cursor, { count: BATCH });
        for (const { result } of results) {
          const place = places.get(result.instance_id);
          if (place !== undefined) rollouts.push(pageRollout(result, place));
        }
        for (const entry of unreadable) {
          const name = entry.rollout_id === null ? null : parseRolloutId(entry.rollout_id);
          const place = name && places.get(name.instanceId);
          if (name && place != null) rollouts.push(pageUnreadable(entry, place, name.index));
        }
        cursor = last_id;
        if (results.length + unreadable.length < BATCH) break;
      }
      const run = runStatus(record, await farm.results.counts(runId));
      return { run, instances, rollouts, running: now, cursor };
    },
    async rollout(rolloutId) {
      const { runId, instanceId } = parseRolloutId(rolloutId);
      const [record, { result, problem }, attempts, instance] = await Promise.all([
        knownRun(farm, runId),
        resultOf(rolloutId),
        farm.journal.read(rolloutId),
        farm.runs.getInstance(runId, instanceId),
      ]);
      if (!instance) {
        throw new SwefarmError('bad_rollout_id', `rollout ${rolloutId}: run ${runId} has no such instance`);
      }
      let kept: ArtifactContent | null = null;
      let missing: string | null = problem;
      try {
        if (result?.artifact) kept = await artifact(result.artifact);
        else if (result)
          missing = 'nothing was kept for this rollout: it ended before there was anything to keep';
      } catch (error) {
        missing = errorMessage(error);
      }
      return {
        rollout_id: rolloutId,
        instance_id: instanceId,
        siblings: Array.from({ length: startedGroup(record) }, (_, index) => index),
        attempts,
        live: result || problem ? null : await liveState(rolloutId),
        problem: instance.problem_statement,
        gold: instance.patch || null,
        ...pageResult(result, kept, missing),
      } satisfies PageDetail;
    },
    tokens: async (rolloutId, turn) => pageTokens(await content(rolloutId), turn),
    log: async (rolloutId) => (await content(rolloutId))?.test_log ?? null,
    async live(rolloutId, after) {
      const [state, { turns, last_id }, { result, problem }] = await Promise.all([
        liveState(rolloutId),
        farm.live.turns(rolloutId, after),
        resultOf(rolloutId),
      ]);
      const finished = result !== null || problem !== null;
      return { turns, cursor: last_id, live: state, finished };
    },
  };
}
