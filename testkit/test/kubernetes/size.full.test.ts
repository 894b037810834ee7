/** Tests 400 workers on fake nodes beside a real one: all are scheduled and discovered, and rollouts cause no request to the API server. */
import { loadConfig, openFarm, type WorkerRecord } from '@swefarm/shared';
import { expect, test } from 'vitest';
import type { ScriptedPolicy } from '../../src/policy/server.ts';
import { until } from '../../src/until.ts';
import { type Caller, callerOf } from './caller.ts';
import {
  type AuditRecord,
  type Cluster,
  NODE,
  PORTS,
  programsWith,
  secretOf,
  workerStates,
} from './cluster.ts';
import { clusterForAll } from './suite.ts';

const programs = programsWith('kwok');
const NODES = 400;
const ROLLOUTS = 32;

let cluster: Cluster;
let policy: ScriptedPolicy;
let caller: Caller;

clusterForAll(programs, { nodes: 1, turns: 1 }, async (opened) => {
  ({ cluster, policy } = opened);
  await cluster.script('fakes', String(NODES));
  const taint = '{"key":"swefarm.test/fake","operator":"Exists"}';
  const values = await cluster.values('farm', 'worker.kind=DaemonSet');
  const from = Date.now();
  const args = [...values, '--set-json', `worker.tolerations=[${taint}]`, '--wait', '--timeout', '300s'];
  await cluster.helm('install', 'farm', 'helm/swefarm', ...args);
  // Helm waits only for the number of pods that an upgrade must leave (worker.upgradeAtOnce), perhaps without the real worker.
  await cluster.kubectl('rollout', 'status', 'daemonset/farm-swefarm-worker', '--timeout=300s');
  console.log(`${NODES + 1} workers are there after ${Math.round((Date.now() - from) / 1000)} s`);
  caller = await callerOf(cluster);
});

type Group = { targets: string[]; labels: { role: string; node?: string } };

test('each node has one worker, and /sd lists the workers of fake nodes', async () => {
  const pods = await workerStates(cluster);
  expect(pods).toHaveLength(NODES + 1);
  expect(new Set(pods.map(({ spec }) => spec.nodeName)).size).toBe(NODES + 1);
  const fakes = pods.filter(({ spec }) => spec.nodeName?.startsWith('fake'));
  const env = {
    SWEFARM_REDIS_URL: `redis://${NODE}:${PORTS.redis}`,
    SWEFARM_REDIS_PASSWORD: await secretOf(cluster, 'farm-swefarm-redis', 'password'),
  };
  await using farm = await openFarm(loadConfig('producer', { env, flags: {} }), 'worker');
  const records = fakes.map(
    ({ metadata, spec, status }): WorkerRecord => ({
      ...{ worker: metadata.name, node: spec.nodeName ?? '', runtime: 'rootfs', slots: 16, active: 0 },
      ...{ started_at: Date.now(), metrics: `${status.podIP}:9400`, paused: 'a fake node' },
    }),
  );
  await Promise.all(records.map((record) => farm.registry.beat(record)));
  const from = performance.now();
  const groups = (await (await caller.ask('/sd')).json()) as Group[];
  const sd = performance.now() - from;
  const metrics = await (await caller.ask('/metrics')).text();
  console.log(`/sd ${Math.round(sd)} ms, /metrics ${Math.round(performance.now() - from - sd)} ms`);
  const found = groups.filter(({ labels }) => labels.role === 'worker').map(({ labels }) => labels.node);
  expect(new Set(found)).toEqual(new Set(pods.map(({ spec }) => spec.nodeName)));
  expect(groups.flatMap(({ targets }) => targets)).toEqual(
    expect.arrayContaining(records.map(({ metrics: address }) => address)),
  );
  expect(metrics).toMatch(new RegExp(`^swefarm_workers\\{state="paused"\\} ${NODES}$`, 'm'));
  await Promise.all(records.map(({ worker }) => farm.registry.leave(worker)));
  expect(sd).toBeLessThan(5_000);
});

test('32 rollouts cause no request to the API server', async () => {
  // The effects of the installation have ended when the namespace does not change for some time.
  let changes = -1;
  await until(
    async () => {
      const before = changes;
      changes = (await cluster.audit()).filter(isChange).length;
      return changes === before;
    },
    { what: 'nobody changes the namespace', pauseMs: 10_000, withinMs: 300_000 },
  );
  const before = await cluster.audit();
  const from = Date.now();
  const run = await caller.submit(policy, ROLLOUTS);
  const lines = await caller.results(run, ROLLOUTS);
  const seconds = Math.round((Date.now() - from) / 1000);
  const asked = (await cluster.audit()).slice(before.length);
  await caller.expectWhole(lines, ROLLOUTS);
  const [changed, own] = [asked.filter(isChange), asked.filter(isOwn)];
  console.log(
    `${ROLLOUTS} rollouts in ${seconds} s; requests of nodes and controllers meanwhile: ${asked.length}, of the farm: ${own.length}`,
  );
  expect(changed).toEqual([]);
  expect(own).toEqual([]);
  const names = asked.map(({ objectRef }) => objectRef?.name ?? '').filter((name) => name.includes(run));
  expect(names).toEqual([]);
});

/** Returns whether a request creates, changes or removes a resource of the farm's namespace, except events. */
const isChange = ({ verb, objectRef }: AuditRecord): boolean =>
  objectRef?.namespace === 'rl' &&
  !['get', 'list', 'watch'].includes(verb) &&
  objectRef.resource !== 'events';
const isOwn = ({ user }: AuditRecord): boolean => user.username.startsWith('system:serviceaccount:rl:');
