/** The chart on a real control plane and two real nodes: 64 rollouts under faults, probes, and what is left. */
import { readFile } from 'node:fs/promises';
import { type ScriptedPolicy, until } from '@swefarm/testkit';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { NO_TOOLS } from '../../helm/render.ts';
import { callerOf, startPolicy } from './caller.ts';
import {
  type Cluster,
  openCluster,
  programs,
  readyWorkers,
  sh,
  untilWorkers,
  workerPods,
  workerStates,
} from './cluster.ts';

const ROLLOUTS = 64;

let cluster: Cluster;
let policy: ScriptedPolicy;
let values: string[];
/** The run that has met all faults. */
let done = '';

beforeEach(({ skip }) => skip(programs === null, NO_TOOLS));
beforeAll(async () => {
  if (programs === null) return;
  cluster = await openCluster(2);
  policy = await startPolicy(8);
  values = await cluster.values('farm');
}, 900_000);
afterAll(async () => {
  await policy?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
}, 120_000);

const inPod = (pod: string, command: string): Promise<string> =>
  cluster.kubectl('exec', pod, '--', 'sh', '-c', command);

/** The worker's process, which the first process of its container started. */
const WORKER = '$(cat /proc/1/task/1/children)';

/**
 * Sixty processes of 64 MiB each in a container of 3 GiB: none is as large as the worker, which is made the first choice of the
 * kernel besides. They end with the container.
 */
const FILL = `echo 1000 >/proc/${WORKER}/oom_score_adj
for each in $(seq 60); do (head -c 64M /dev/zero | tail -c 64M | sleep 120) & done
wait`;

async function fillMemory(): Promise<void> {
  const pod = (await workerPods(cluster)).at(-1) ?? '';
  // It ends with its container.
  await inPod(pod, FILL).catch(() => undefined);
  const name = pod.replace('pod/', '');
  const reason = async () =>
    (await workerStates(cluster)).find(({ metadata }) => metadata.name === name)?.status
      .containerStatuses?.[0]?.lastState.terminated?.reason;
  await until(async () => (await reason()) === 'OOMKilled', {
    what: 'the worker is OOMKilled',
    pauseMs: 500,
  });
}

/** What happens once so many results are there. */
const FAULTS: [at: number, name: string, strike: () => Promise<unknown>][] = [
  [
    6,
    'a worker’s pod is killed',
    async () =>
      cluster.kubectl('delete', (await workerPods(cluster))[0] ?? '', '--grace-period=0', '--force'),
  ],
  [14, 'the pod of Redis is killed', () => cluster.kubectl('delete', 'pod', 'farm-swefarm-redis-0')],
  [
    22,
    'helm upgrade --wait',
    () =>
      cluster.helm(
        ...['upgrade', 'farm', 'helm/swefarm', ...values, '--set', 'worker.podAnnotations.version=two'],
        ...['--set', 'gateway.config.gateway_max_hold_seconds=3000', '--wait', '--timeout', '240s'],
      ),
  ],
  [
    32,
    'a worker’s process is killed, and started again in its pod',
    async () => inPod((await workerPods(cluster))[0] ?? '', `kill -9 ${WORKER}`),
  ],
  [40, 'a worker’s container goes over its memory', fillMemory],
  [
    50,
    'a node is drained',
    () =>
      cluster.kubectl('drain', 'node2', '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=120s'),
  ],
];

test('the API server takes the chart, strictly, and installs it', async () => {
  const version = ['--kube-version', 'v1.33.13'];
  const manifest = await cluster.helm('template', 'farm', 'helm/swefarm', ...values, ...version);
  expect(await cluster.dryRun(manifest)).toContain(
    'deployment.apps/farm-swefarm-worker created (server dry run)',
  );
  await cluster.helm('install', 'farm', 'helm/swefarm', ...values, '--wait', '--timeout', '180s');
  await untilWorkers(cluster, 2);
});

test('64 rollouts under faults: each has one result with its artifact, and the API server hears of none', async () => {
  const caller = await callerOf(cluster);
  const run = await caller.submit(policy, ROLLOUTS);
  const faults = [...FAULTS];
  const from = Date.now();
  const say = (text: string) => console.log(`${Math.round((Date.now() - from) / 1000)} s, ${text}`);
  const lines = await caller.results(run, ROLLOUTS, async ({ length }) => {
    const [next] = faults;
    if (!next || length < next[0]) return;
    faults.shift();
    say(`${length} results: ${next[1]}`);
    await next[2]();
  });
  say(`${lines.length} results, ${lines.filter(({ attempt }) => attempt > 1).length} of a later attempt`);
  expect(faults).toEqual([]);
  await caller.expectWhole(lines, ROLLOUTS);
  done = run;
  const own = (await cluster.audit()).filter(({ user }) =>
    user.username.startsWith('system:serviceaccount:rl:'),
  );
  expect(own).toEqual([]);
});

test('ready fails while Redis is away and comes back with it; nobody is started again for it', async () => {
  await cluster.kubectl('uncordon', 'node2');
  await untilWorkers(cluster, 2);
  const restarts = async () =>
    (await workerStates(cluster)).map(({ status }) => status.containerStatuses?.[0]?.restartCount);
  const before = await restarts();
  await cluster.kubectl('scale', 'statefulset/farm-swefarm-redis', '--replicas=0');
  await untilWorkers(cluster, 0);
  await cluster.kubectl('scale', 'statefulset/farm-swefarm-redis', '--replicas=1');
  await untilWorkers(cluster, 2);
  expect(await restarts()).toEqual(before);
});

test('ready fails while the runtime is gone and comes back with it; alive fails for a worker that stands still, which is started again', async () => {
  const [first = '', second = ''] = await workerPods(cluster);
  const restartsOf = async (pod: string) =>
    (await workerStates(cluster)).find(({ metadata }) => `pod/${metadata.name}` === pod)?.status
      .containerStatuses?.[0]?.restartCount ?? 0;
  const before = await restartsOf(second);
  await inPod(second, `kill -STOP ${WORKER}`);
  // Sandboxes are made here.
  await inPod(first, 'mount -o remount,bind,ro /scratch');
  await untilWorkers(cluster, 0);
  expect(await cluster.kubectl('logs', first)).toMatch(/"reason":"runtime rootfs:.*"msg":"not ready"/);
  await inPod(first, 'mount -o remount,bind,rw /scratch');
  await until(async () => (await readyWorkers(cluster)) >= 1, { what: 'the first worker is ready again' });
  await until(async () => (await restartsOf(second)) === before + 1, {
    what: 'the kubelet starts the second worker again',
    withinMs: 360_000,
    pauseMs: 2_000,
  });
  await untilWorkers(cluster, 2);
}, 600_000);

test('minutes later no rollout has a second result, and nothing is left on the nodes: no sandbox, no mount, no control group', async () => {
  const caller = await callerOf(cluster);
  const later = await (await caller.ask(`/v1/runs/${done}/results?count=1000`)).json();
  expect((later as { results: unknown[] }).results).toHaveLength(ROLLOUTS);
  await cluster.helm('uninstall', 'farm', '--wait', '--timeout', '120s');
  await until(async () => (await cluster.kubectl('get', 'pods', '-o', 'name')) === '', {
    what: 'no pod is left',
  });
  const mounts = (await readFile('/proc/mounts', 'utf8'))
    .split('\n')
    .filter((line) => /\/scratch\/|rootfs-\w+\/merged/.test(line) && line.includes(cluster.folder));
  expect(mounts).toEqual([]);
  const find = (...args: string[]) => sh('find', ...args).catch(() => '');
  expect(await find('/sys/fs/cgroup', '-path', '*swefarm-node*', '-name', 'rootfs-*')).toBe('');
  expect(await find(cluster.folder, '-path', '*/volumes/*', '-name', 'rootfs-*')).toBe('');
});
