/** Tests the chart on a real control plane and two real nodes: 64 rollouts under faults, probes, and leftovers. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { ScriptedPolicy } from '../../src/policy/server.ts';
import { until } from '../../src/until.ts';
import {
  type Cluster,
  programs,
  readyWorkers,
  sh,
  untilWorkers,
  workerPods,
  workerStates,
} from './cluster.ts';
import { expectNoMore, inPod, survive, WORKER } from './faults.ts';
import { clusterForAll, installChart } from './suite.ts';

let cluster: Cluster;
let policy: ScriptedPolicy;
let values: string[];
/** Id of the run that all faults have hit. */
let done = '';

clusterForAll(programs, { nodes: 2, turns: 8 }, async (opened) => {
  ({ cluster, policy } = opened);
  values = await cluster.values('farm');
});

test('the API server validates the chart strictly and installs it', async () => {
  const version = ['--kube-version', 'v1.33.13'];
  const manifest = await cluster.helm('template', 'farm', 'helm/swefarm', ...values, ...version);
  expect(await cluster.dryRun(manifest)).toContain(
    'deployment.apps/farm-swefarm-worker created (server dry run)',
  );
  await installChart(cluster, 'farm', values);
  await untilWorkers(cluster, 2);
});

test('64 rollouts under faults have one result and artifact each, without the API server', async () => {
  done = await survive(cluster, policy, values);
});

test('readiness follows Redis, and no pod restarts because of Redis', async () => {
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

test('readiness follows the runtime; a stuck worker is restarted', async () => {
  const [first = '', second = ''] = await workerPods(cluster);
  const restartsOf = async (pod: string) =>
    (await workerStates(cluster)).find(({ metadata }) => `pod/${metadata.name}` === pod)?.status
      .containerStatuses?.[0]?.restartCount ?? 0;
  const before = await restartsOf(second);
  await inPod(cluster, second, `kill -STOP ${WORKER}`);
  // The worker creates sandboxes in /scratch.
  await inPod(cluster, first, 'mount -o remount,bind,ro /scratch');
  await untilWorkers(cluster, 0);
  expect(await cluster.kubectl('logs', first)).toMatch(/"reason":"runtime rootfs:.*"msg":"not ready"/);
  await inPod(cluster, first, 'mount -o remount,bind,rw /scratch');
  await until(async () => (await readyWorkers(cluster)) >= 1, { what: 'the first worker is ready again' });
  await until(async () => (await restartsOf(second)) === before + 1, {
    what: 'the kubelet starts the second worker again',
    withinMs: 360_000,
    pauseMs: 2_000,
  });
  await untilWorkers(cluster, 2);
}, 600_000);

test('later no rollout has a second result, and the nodes have no sandbox, mount or cgroup', async () => {
  await expectNoMore(cluster, done);
  await cluster.helm('uninstall', 'farm', '--wait', '--timeout', '120s');
  await until(async () => (await cluster.kubectl('get', 'pods', '-o', 'name')) === '', {
    what: 'no pod is left',
  });
  const mounts = (await readFile('/proc/mounts', 'utf8'))
    .split('\n')
    .filter((line) => /\/scratch\/|rootfs-\w+\/merged/.test(line) && line.includes(cluster.folder));
  expect(mounts).toEqual([]);
  const find = (...args: string[]) => sh('find', ...args).catch(() => '');
  expect(await find('/sys/fs/cgroup', '-path', '*swefarm*-node*', '-name', 'rootfs-*')).toBe('');
  expect(await find(cluster.folder, '-path', '*/volumes/*', '-name', 'rootfs-*')).toBe('');
});
