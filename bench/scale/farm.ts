/** Starts a farm of simulated nodes with its own Redis, and makes the rollouts that are submitted to it. */
import { newRunRecord } from '@swefarm/runs';
import {
  type Farm,
  Instance,
  loadConfig,
  newId,
  openFarm,
  type Result,
  type RunRecord,
  sleep,
} from '@swefarm/shared';
import { startRedis, until } from '@swefarm/testkit';
import { type Fleet, PATIENCE, startFleet } from '../fleet.ts';
import { type Books, openBooks } from '../load.ts';

export const GROUP = 16;
/** A policy as in a training run; workers balance its endpoints by the bindings of all workers. */
const POLICY = [1, 2, 3, 4].map((port) => `http://127.0.0.1:${port}/v1`);
/** Maximum age in ms of a worker's information about other workers. */
const ACQUAINTED_MS = 2_000;

export type SimulatedFarm = AsyncDisposable & { farm: Farm; fleet: Fleet; look(): Promise<Books> };

/** Starts a Redis and the nodes of its farm. */
export async function openSimulatedFarm({
  nodes,
  slots,
}: {
  nodes: number;
  slots: number;
}): Promise<SimulatedFarm> {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const flags = { redisUrl: redis.url, redisPrefix: 'scale' };
  const farm = stack.use(await openFarm(loadConfig('producer', { env: {}, flags }), 'producer'));
  const fleet = stack.use(await startFleet(nodes, { ...flags, slots }));
  await until(async () => (await farm.registry.list()).length === nodes, PATIENCE);
  await sleep(ACQUAINTED_MS);
  const look = openBooks(farm);
  const all = stack.move();
  return { farm, fleet, look, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

export type Collected = {
  result: Result;
  /** Time of the commit, in milliseconds since the epoch by Redis's clock. */
  at: number;
};

/** Reads results as the producer's collector does, until there are `count`. */
export async function collect(farm: Farm, runId: string, count: number): Promise<Collected[]> {
  const results: Collected[] = [];
  for (let from = '0'; results.length < count; ) {
    const batch = await farm.results.read(runId, from, { blockMs: 60_000 });
    from = batch.last_id;
    for (const { stream_id, result } of batch.results)
      results.push({ result, at: Number(stream_id.split('-')[0]) });
  }
  return results;
}

/** Throws when the farm lost a result, counted one twice or gave one up, because the figures would then be meaningless. */
export function onceEach(results: readonly Collected[], rollouts: number, lost: number): void {
  const ids = new Set(results.map(({ result }) => result.rollout_id));
  const judged = results.filter(({ result }) => result.outcome === 'judged').length;
  const again = results.filter(({ result }) => result.attempt > 1).length;
  if (ids.size === rollouts && results.length === rollouts && judged === rollouts && again >= lost) return;
  throw new Error(
    `${results.length} results of ${ids.size} rollouts, ${judged} judged and ${again} by a second attempt; ` +
      `expected ${rollouts}, ${rollouts}, ${rollouts} and at least ${lost}`,
  );
}

const WORDS = 'the parser drops an empty list when its first element is a mapping with no keys of its own';

export function instancesOf(name: string, count: number): Instance[] {
  return Array.from({ length: count }, (_, at) =>
    Instance.parse({
      instance_id: `bench__${name}-${at}`,
      repo: 'bench/scale',
      base_commit: 'f00',
      problem_statement: WORDS.repeat(20),
      patch: `${WORDS}\n`.repeat(20),
      test_patch: `${WORDS}\n`.repeat(30),
      FAIL_TO_PASS: ['tests/test_parser.py::test_empty'],
      PASS_TO_PASS: Array.from({ length: 200 }, (_, test) => `tests/test_parser.py::test_${at}_${test}`),
      family: 'custom',
      image: `bench/${name}:${at}`,
    }),
  );
}

/** @param admission maximum number of rollouts that play at once; null: no limit */
export function recordOf(instances: Instance[], admission: number | null = null): RunRecord {
  const dataset = { path: 'bench', sha256: newId(), instances };
  const flags = {
    agent: 'mini',
    model: 'simulated',
    groupSize: GROUP,
    policyUrl: POLICY,
    admission: admission ?? 'off',
  };
  return newRunRecord({ dataset, flags }, false);
}
