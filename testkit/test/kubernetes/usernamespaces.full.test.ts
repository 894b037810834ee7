/** Tests pods with user namespaces (hostUsers: false) on containerd 2: the modes rootfs-userns and podman. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { importTree } from '../../src/images/import.ts';
import { prepareSubject } from '../../src/images/subject.ts';
import { words } from '../../src/launchers/commands.ts';
import { ensureDocker } from '../../src/launchers/docker.ts';
import type { ScriptedPolicy } from '../../src/policy/server.ts';
import { until } from '../../src/until.ts';
import { type Caller, callerOf } from './caller.ts';
import { type Cluster, programsWith, sh } from './cluster.ts';
import { WORKER } from './faults.ts';
import { expectFilled } from './prepull.ts';
import { hasNetwork, probe } from './probe.ts';
import { clusterForAll, copyToNodes, copyToPod, expectNoCapability, installForTest } from './suite.ts';

const programs = programsWith('containerd');
const PODMAN = 'swefarm.test/podman:1';

let cluster: Cluster;
let policy: ScriptedPolicy;

clusterForAll(programs, { nodes: 1, turns: 1, engine: 'containerd' }, (opened) => {
  ({ cluster, policy } = opened);
});

const mapOf = (pod: string, container: string): Promise<string> =>
  cluster.kubectl(...words`exec ${pod} -c ${container} -- cat /proc/1/uid_map`);

/** Installs a release with one worker. Returns its pod and the first uid on the node of its user namespace. */
async function install(name: string, ...set: string[]): Promise<{ pod: string; first: number }> {
  const pod = await installForTest(cluster, name, ...set);
  const map = (await mapOf(pod, 'worker')).split(/\s+/);
  expect(map).toEqual(['0', expect.stringMatching(/^\d+$/), '65536']);
  return { pod, first: Number(map[1]) };
}

/** Returns the command lines of the node's processes with uids of one pod. */
async function processesOf(first: number): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const all = await Promise.all(
    pids.map(async (pid) => {
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      const user = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? 0);
      return user >= first && user < first + 65_536
        ? [await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')]
        : [];
    }),
  );
  return all.flat();
}

/** Uninstalls a release. Fails unless no process, mount or file of the release is left on the node. */
async function uninstall(name: string, first: number): Promise<void> {
  await cluster.helm('uninstall', name, '--wait', '--timeout', '120s');
  await until(async () => (await cluster.kubectl('get', 'pods', '-o', 'name')) === '', {
    what: 'no pod is left',
  });
  await until(async () => (await processesOf(first)).length === 0, { what: 'no process of it is left' });
  const mounts = (await readFile('/proc/mounts', 'utf8'))
    .split('\n')
    .filter((line) => /\/volumes\/|\/merged /.test(line) && line.includes(cluster.folder));
  expect(mounts).toEqual([]);
  const left = ['-path', '*/volumes/*', '-name', 'rootfs-*'];
  expect(await sh('find', cluster.folder, ...left).catch(() => '')).toBe('');
}

/** Fails unless each rollout has the reward of its script. */
async function runMany(caller: Caller, count: number, image?: string): Promise<void> {
  const from = Date.now();
  const run = await caller.submit(policy, count, image);
  await caller.expectWhole(await caller.results(run, count), count);
  console.log(`${count} rollouts in ${Math.round((Date.now() - from) / 1000)} s`);
}

const doctor = (pod: string): Promise<string> =>
  cluster
    .kubectl(...words`exec ${pod} -c worker -- swefarm-worker doctor --json`)
    .catch((error: { stdout: string }) => error.stdout);

test('mode rootfs-userns: rollouts neither see nor change anything of the node', async () => {
  const { pod, first } = await install('own', 'runtime.mode=rootfs-userns');
  expect(first).toBeGreaterThanOrEqual(65_536);
  expect((await processesOf(first)).join()).toContain('swefarm-worker');
  expect(await doctor(pod)).toContain('cpu none, memory watched, pids watched, disk watched');
  const caller = await callerOf(cluster, 'own');
  await runMany(caller, 64);
  const { users, done, filled } = await probe(cluster, caller);
  expect(users).toBe(first);
  expect(done).toEqual([]);
  // 128 + SIGKILL: the worker measures the disk once a second and kills the command.
  expect(filled).toBe(137);
  expect(await hasNetwork(caller)).toBe(true);
  await uninstall('own', first);
});

test('mode rootfs-userns: workers use the store that a pod with other users has filled', async () => {
  const made: string[] = [];
  const here = async (name: string, ...set: string[]) => {
    const { pod, first } = await install(name, ...set);
    made.push(await mapOf(pod, 'worker'));
    return first;
  };
  const { store, pod } = await expectFilled(cluster, policy, 'daemonset', here, 'runtime.mode=rootfs-userns');
  expect(made).not.toContain(await mapOf(pod, 'done'));
  // Files of the store belong to the node's root, whatever the uids of the pod are.
  expect(await sh('find', store, '!', '-uid', '0')).toBe('');
});

/** Builds an image with Debian's Podman and copies it to the nodes. */
async function importPodman(): Promise<void> {
  const base = `${PODMAN}-base`;
  const packages = 'crun,fuse-overlayfs,libcap2-bin,netavark,podman,slirp4netns,uidmap';
  await sh('bash', 'testkit/kubernetes/base.sh', 'docker', base, packages);
  const build = 'docker build -q --build-arg "BASE=$0" -t "$1" - <testkit/kubernetes/podman.Dockerfile';
  await sh('bash', '-c', build, base, PODMAN);
  await copyToNodes(cluster, PODMAN);
}

/** Kills the engine beside the worker during rollouts. Fails unless each rollout has its reward. */
async function killEngine(caller: Caller, pod: string, image: string): Promise<void> {
  const kill = ['sh', '-c', `kill -9 ${WORKER}`];
  let isKilled = false;
  const run = await caller.submit(policy, 8, image);
  const lines = await caller.results(run, 8, async ({ length }) => {
    if (isKilled || length < 2) return;
    isKilled = true;
    await cluster.kubectl('exec', pod, '-c', 'podman', '--', ...kill);
  });
  expect(isKilled).toBe(true);
  await caller.expectWhole(lines, 8);
}

test('mode podman: rollouts survive the worker, which has no capability', async () => {
  await importPodman();
  const { socketPath } = await ensureDocker();
  const { tree, image } = await prepareSubject();
  await importTree(socketPath, tree, image);
  const resources = 'runtime.podman.resources';
  const store = join(cluster.folder, 'podman');
  const { pod, first } = await install(
    'boxed',
    ...['runtime.mode=podman', `runtime.podman.image=${PODMAN}`, 'worker.archives=null'],
    ...[`${resources}.requests.cpu=100m`, `${resources}.requests.memory=256Mi`],
    ...[`${resources}.limits.cpu=2`, `${resources}.limits.memory=3Gi`],
    `worker.store.path=${store}`,
  );
  expect(first).toBeGreaterThanOrEqual(65_536);
  const processes = (await processesOf(first)).join();
  expect(processes).toContain('swefarm-worker');
  expect(processes).toContain('podman\0system\0service');
  await expectNoCapability(cluster, pod);
  // A rootless Podman cannot set limits with cgroup v1, so only the limits of the sidecar apply.
  expect(await doctor(pod)).toContain('cpu none, memory none, pids none, disk none');
  const podman = words`exec -i ${pod} -c podman -- podman --url unix:///run/engine/podman.sock`;
  await copyToPod(cluster, image, podman);
  const caller = await callerOf(cluster, 'boxed');
  await runMany(caller, 16, image);
  const { users, done } = await probe(cluster, caller, image);
  // The uid of the engine's user in the pod.
  expect(users).toBe(1000);
  expect(done).toEqual([]);
  // A network would need a device that a pod does not have.
  await expect(hasNetwork(caller, image)).rejects.toThrow(/max_network/);
  await killEngine(caller, pod, image);
  // The reaper checks for leftovers of the dead engine every few minutes.
  await until(async () => (await cluster.kubectl(...podman, 'ps', '-aq')) === '', {
    withinMs: 300_000,
    what: 'no sandbox is left',
  });
  await uninstall('boxed', first);
});
