/** Reads the state, rates and failures of a farm repeatedly, for `swefarm watch`. */
import { type FarmStatus, farmStatus, type RunStatus } from '@swefarm/gateway';
import {
  describeUnreadable,
  type Farm,
  type LiveRollout,
  type Result,
  type UnreadableResult,
} from '@swefarm/shared';
import { countNames } from '@swefarm/trajectories';

export type WatchedRun = RunStatus & {
  /** Number of rollouts committed per minute in the last {@link WINDOW_MS}; null at the first update. */
  per_minute: number | null;
  /** Number of groups whose rollouts are all committed. */
  groups_done: number;
  groups: number;
  running: number;
};

export type RecentFailure = Pick<Result, 'rollout_id' | 'node' | 'finished_at'> & {
  cause: string;
  message: string;
};

export type FarmView = Omit<FarmStatus, 'runs'> & {
  at: number;
  runs: WatchedRun[];
  /** Number of running rollouts by stage. */
  stages: Record<string, number>;
  /** Mean seconds of each stage, over the most recently judged rollouts. */
  seconds: Record<string, number>;
  /** Recent failures, newest first. */
  failures: RecentFailure[];
};

type Look = { at: number; committed: Map<string, number> };
type RunTail = { cursor: string; recent: Result[] };

/** Time over which rates are computed. */
const WINDOW_MS = 120_000;
const MOST_FAILURES = 50;
const MOST_RESULTS = 200;
/** Maximum number of runs. Older runs are omitted, because a farm stores runs for days. */
const MOST_RUNS = 12;
const BATCH = 1000;

/** Returns a function that reads the farm. The first call reads all results, later calls read only new results. */
export function watchFarm(farm: Farm, runId?: string): () => Promise<FarmView> {
  const looks: Look[] = [];
  const tails = new Map<string, RunTail>();
  let failures: RecentFailure[] = [];
  return async () => {
    const status = await farmStatus(farm, runId);
    const at = Date.now();
    const runs = status.runs.slice(0, MOST_RUNS);
    const running = await farm.live.running(status.workers.map(({ worker }) => worker));
    for (const { run_id } of runs) {
      failures = [...(await readTail(farm, run_id, tails)), ...failures];
    }
    failures = failures.sort((a, b) => b.finished_at - a.finished_at).slice(0, MOST_FAILURES);
    looks.push({ at, committed: new Map(status.runs.map((run) => [run.run_id, run.committed])) });
    while (looks.length > 2 && at - (looks[0]?.at ?? 0) > WINDOW_MS) looks.shift();
    return {
      ...status,
      at,
      failures,
      runs: await Promise.all(runs.map((run) => watchedRun(farm, run, running, looks))),
      stages: countNames(running.map(({ stage }) => stage)),
      seconds: meanSeconds([...tails.values()].flatMap(({ recent }) => recent)),
    };
  };
}

/** Reads the new results of a run. Returns the failures among them. */
async function readTail(farm: Farm, runId: string, tails: Map<string, RunTail>): Promise<RecentFailure[]> {
  const tail = tails.get(runId) ?? { cursor: '0', recent: [] };
  tails.set(runId, tail);
  const fresh: Result[] = [];
  const failures: RecentFailure[] = [];
  let count: number;
  do {
    const { results, unreadable, last_id } = await farm.results.read(runId, tail.cursor, { count: BATCH });
    fresh.push(...results.map(({ result }) => result));
    failures.push(...unreadable.map(unreadableFailure));
    tail.cursor = last_id;
    count = results.length + unreadable.length;
  } while (count >= BATCH);
  tail.recent = [...tail.recent, ...fresh.filter((one) => one.outcome === 'judged')].slice(-MOST_RESULTS);
  return [...failures, ...fresh.flatMap(failureOf)];
}

function failureOf({ rollout_id, node, finished_at, failure }: Result): RecentFailure[] {
  if (!failure) return [];
  const cause = `${failure.stage}/${failure.class}`;
  return [{ rollout_id, node, finished_at, cause, message: failure.message }];
}

const unreadableFailure = (entry: UnreadableResult): RecentFailure => ({
  rollout_id: entry.rollout_id ?? 'unknown',
  node: '',
  finished_at: Number.parseInt(entry.stream_id, 10),
  cause: 'result_unreadable',
  message: describeUnreadable(entry),
});

async function watchedRun(
  farm: Farm,
  run: RunStatus,
  running: readonly LiveRollout[],
  looks: readonly Look[],
): Promise<WatchedRun> {
  const groups = [...(await farm.results.groups(run.run_id)).values()];
  const [first] = looks;
  const last = looks.at(-1);
  const minutes = first && last ? (last.at - first.at) / 60_000 : 0;
  const before = first?.committed.get(run.run_id) ?? 0;
  return {
    ...run,
    per_minute: minutes > 0 ? (run.committed - before) / minutes : null,
    groups_done: groups.filter((group) => group.left === 0).length,
    groups: groups.length,
    running: running.filter((one) => one.rollout_id.startsWith(`${run.run_id}.`)).length,
  };
}

const SHOWN_SECONDS = ['queued', 'image', 'sandbox', 'model', 'command', 'patch', 'evaluation'] as const;

function meanSeconds(results: readonly Result[]): Record<string, number> {
  if (results.length === 0) return {};
  return Object.fromEntries(
    SHOWN_SECONDS.map((stage) => [
      stage,
      results.reduce((sum, result) => sum + result.seconds[stage], 0) / results.length,
    ]),
  );
}
