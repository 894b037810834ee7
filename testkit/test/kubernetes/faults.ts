/** Faults of a release during its rollouts: an upgrade, a drained node, killed pods and processes. */

import { expect } from 'vitest';
import type { ScriptedPolicy } from '../../src/policy/server.ts';
import { until } from '../../src/until.ts';
import { callerOf } from './caller.ts';
import { type Cluster, workerPods, workerStates } from './cluster.ts';

const ROLLOUTS = 64;

export const inPod = ({ kubectl }: Cluster, pod: string, command: string): Promise<string> =>
  kubectl('exec', pod, '--', 'sh', '-c', command);

/** Shell text that gives the pid of the worker, the child of its container's first process. */
export const WORKER = '$(cat /proc/1/task/1/children)';

/**
 * Fills the memory of a container of 3 GiB with 60 processes of 64 MiB each. The worker gets the highest OOM score, so that the kernel
 * kills it first. The processes end with the container.
 */
const FILL = `echo 1000 >/proc/${WORKER}/oom_score_adj
for each in $(seq 60); do (head -c 64M /dev/zero | tail -c 64M | sleep 120) & done
wait`;

async function fillMemory(cluster: Cluster): Promise<void> {
  const pod = (await workerPods(cluster)).at(-1) ?? '';
  // The command fails when its container ends.
  await inPod(cluster, pod, FILL).catch(() => undefined);
  const name = pod.replace('pod/', '');
  const reason = async () =>
    (await workerStates(cluster)).find(({ metadata }) => metadata.name === name)?.status
      .containerStatuses?.[0]?.lastState.terminated?.reason;
  await until(async () => (await reason()) === 'OOMKilled', {
    what: 'the worker is OOMKilled',
    pauseMs: 500,
  });
}

type Fault = { at: number; name: string; strike(): Promise<unknown> };

/** Returns the faults in order. `at`: number of results at which a fault strikes. @param values values of the installed release `farm` */
function faultsOf(cluster: Cluster, values: readonly string[]): Fault[] {
  const { kubectl, helm } = cluster;
  const firstWorker = async () => (await workerPods(cluster))[0] ?? '';
  const upgrade = ['--set', 'worker.podAnnotations.version=two'];
  upgrade.push('--set', 'gateway.config.gateway_max_hold_seconds=3000', '--wait', '--timeout', '240s');
  const drain = ['--ignore-daemonsets', '--delete-emptydir-data', '--timeout=120s'];
  return [
    {
      at: 6,
      name: 'a worker’s pod is killed',
      strike: async () => kubectl('delete', await firstWorker(), '--grace-period=0', '--force'),
    },
    {
      at: 14,
      name: 'the pod of Redis is killed',
      strike: () => kubectl('delete', 'pod', 'farm-swefarm-redis-0'),
    },
    {
      at: 22,
      name: 'helm upgrade --wait',
      strike: () => helm('upgrade', 'farm', 'helm/swefarm', ...values, ...upgrade),
    },
    {
      at: 32,
      name: 'a worker’s process is killed, and started again in its pod',
      strike: async () => inPod(cluster, await firstWorker(), `kill -9 ${WORKER}`),
    },
    { at: 40, name: 'a worker’s container goes over its memory', strike: () => fillMemory(cluster) },
    { at: 50, name: 'a node is drained', strike: () => kubectl('drain', 'node2', ...drain) },
  ];
}

/**
 * Submits 64 rollouts and causes each fault in the release `farm`. Fails unless each rollout has one result with its artifact, and no
 * account of the release sent a request to the API server. Returns the id of the run.
 */
export async function survive(
  cluster: Cluster,
  policy: ScriptedPolicy,
  values: readonly string[],
  image?: string,
): Promise<string> {
  const caller = await callerOf(cluster);
  const run = await caller.submit(policy, ROLLOUTS, image);
  const faults = faultsOf(cluster, values);
  const from = Date.now();
  const note = (text: string) => console.log(`${Math.round((Date.now() - from) / 1000)} s, ${text}`);
  const lines = await caller.results(run, ROLLOUTS, async ({ length }) => {
    const [next] = faults;
    if (!next || length < next.at) return;
    faults.shift();
    note(`${length} results: ${next.name}`);
    await next.strike();
  });
  note(`${lines.length} results, ${lines.filter(({ attempt }) => attempt > 1).length} of a later attempt`);
  expect(faults).toEqual([]);
  await caller.expectWhole(lines, ROLLOUTS);
  const own = (await cluster.audit()).filter(({ user }) =>
    user.username.startsWith('system:serviceaccount:rl:'),
  );
  expect(own).toEqual([]);
  return run;
}

/** Fails when a rollout of the run has a second result. */
export async function expectNoMore(cluster: Cluster, run: string): Promise<void> {
  const caller = await callerOf(cluster);
  const answer = await (await caller.ask(`/v1/runs/${run}/results?count=1000`)).json();
  expect((answer as { results: unknown[] }).results).toHaveLength(ROLLOUTS);
}
