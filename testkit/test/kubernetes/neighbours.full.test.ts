/**
 * Tests two releases in one namespace, each with two workers, on one node with one store of images. Faults strike one release and must
 * not affect the other; then the reverse. Each part lasts a minute, or half of SWEFARM_TEST_CHAOS_MINUTES. In an hour some rollouts of
 * the struck release lose three workers in a row and are given up without a reward: at most as many as the strikes explain.
 */
import { sleep } from '@swefarm/shared';
import { expect, test } from 'vitest';
import type { ScriptedPolicy } from '../../src/policy/server.ts';
import { until } from '../../src/until.ts';
import { type Caller, callerOf, type Line } from './caller.ts';
import { type Cluster, NODE, PORTS, programs, untilWorkers, workerPods } from './cluster.ts';
import { inPod, WORKER } from './faults.ts';
import { clusterForAll, installChart } from './suite.ts';

const MINUTES = Number(process.env.SWEFARM_TEST_CHAOS_MINUTES ?? 2);
const BATCH = 12;
/** Concurrency of a worker in the values of the tests. */
const SLOTS = 4;
/** Number of consecutive lost workers after which a rollout is given up. */
const DEATHS = 3;
const RELEASES = {
  farm: PORTS,
  other: { gateway: PORTS.gateway + 1, redis: PORTS.redis + 1 },
} as const;
type Name = keyof typeof RELEASES;

let cluster: Cluster;
let policy: ScriptedPolicy;
const callers = {} as Record<Name, Caller>;

clusterForAll(programs, { nodes: 1, turns: 4 }, async (opened) => {
  ({ cluster, policy } = opened);
  for (const [name, { gateway, redis }] of Object.entries(RELEASES) as [Name, (typeof RELEASES)[Name]][]) {
    const values = await cluster.values(name, `gateway.port=${gateway}`, `redis.port=${redis}`);
    await installChart(cluster, name, values);
    callers[name] = await callerOf(cluster, name, `http://${NODE}:${gateway}`);
  }
});

const anyWorker = async (name: Name): Promise<string> => {
  const pods = await workerPods(cluster, name);
  return pods[Math.floor(Math.random() * pods.length)] ?? '';
};

/** Faults, which are repeated in this order. */
const STRIKES: [name: string, strike: (release: Name) => Promise<unknown>][] = [
  [
    'a worker’s process is killed',
    async (release) => inPod(cluster, await anyWorker(release), `kill -9 ${WORKER}`),
  ],
  [
    'a worker’s pod is killed',
    async (release) => cluster.kubectl('delete', await anyWorker(release), '--grace-period=0', '--force'),
  ],
  [
    'a worker’s pod drains',
    async (release) => cluster.kubectl('delete', await anyWorker(release), '--wait=false'),
  ],
  [
    'the pod of Redis is killed',
    (release) => cluster.kubectl('delete', 'pod', `${release}-swefarm-redis-0`, '--wait=false'),
  ],
  [
    'the gateway’s pod is killed',
    (release) =>
      cluster.kubectl(
        ...['delete', 'pod', '--grace-period=0', '--force', '-l'],
        `app.kubernetes.io/instance=${release},app.kubernetes.io/component=gateway`,
      ),
  ],
];

/** Number of entries at the start of STRIKES that kill a worker with all its rollouts. */
const DEADLY = 2;

const isGivenUp = ({ failure, reward }: Line): boolean =>
  failure?.class === 'lost' && failure.attempts >= DEATHS && reward === null;

/** Runs batches on one release until `stop` aborts. Fails unless all rollouts that were not given up have the right result. */
async function work(release: Name, stop: AbortSignal): Promise<Line[]> {
  const lines: Line[] = [];
  while (!stop.aborted) {
    const run = await submitted(release);
    const found = await callers[release].results(run, BATCH);
    expect(found).toHaveLength(BATCH);
    const whole = found.filter((line) => !isGivenUp(line));
    await callers[release].expectWhole(whole, whole.length);
    lines.push(...found);
  }
  return lines;
}

/** Submits a batch, with retries because the gateway may be unavailable for some seconds. */
async function submitted(release: Name): Promise<string> {
  let run = '';
  await until(
    async () => {
      run = await callers[release].submit(policy, BATCH).catch(() => '');
      return run !== '';
    },
    { what: `${release} takes a run`, pauseMs: 1_000 },
  );
  return run;
}

test.for([
  ['farm', 'other'],
  ['other', 'farm'],
] as const)(
  '%s is disturbed and gets its results; %s on the same node needs one attempt for each',
  { timeout: MINUTES * 60_000 + 900_000 },
  async ([victim, neighbour]) => {
    await untilWorkers(cluster, 2, victim);
    await untilWorkers(cluster, 2, neighbour);
    const stop = AbortSignal.timeout(MINUTES * 30_000);
    const working = Promise.all([work(victim, stop), work(neighbour, stop)]);
    let struck = 0;
    let deadly = 0;
    const striking = (async () => {
      while (!stop.aborted) {
        await sleep(5_000 + Math.random() * 10_000);
        const [name, strike] = STRIKES[struck % STRIKES.length] ?? [];
        if (stop.aborted || !strike) break;
        console.log(`${victim}: ${name}`);
        if (struck % STRIKES.length < DEADLY) deadly++;
        // The pod may have just ended, or may not exist yet.
        await strike(victim).then(
          () => (struck += 1),
          (error: Error) => console.log(error.message.split('\n').at(-1)),
        );
      }
    })();
    const [suffered, untouched] = await working;
    await striking;
    const again = suffered.filter(({ attempt }) => attempt > 1).length;
    const givenUp = suffered.filter(isGivenUp).length;
    console.log(
      `${struck} strikes; ${victim}: ${suffered.length} rollouts, ${again} of a later attempt, ${givenUp} given up; ${neighbour}: ${untouched.length}`,
    );
    expect(struck).toBeGreaterThan(2);
    expect(givenUp * DEATHS).toBeLessThanOrEqual(deadly * SLOTS);
    expect(untouched.filter(({ attempt }) => attempt > 1)).toEqual([]);
  },
);
