/** Tests the node's own engine, a Docker beside the worker, stores that prepull fills from archives, and jobs of trainers. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { importTree } from '../../src/images/import.ts';
import { prepareSubject } from '../../src/images/subject.ts';
import { words } from '../../src/launchers/commands.ts';
import { ensureDocker } from '../../src/launchers/docker.ts';
import type { ScriptedPolicy } from '../../src/policy/server.ts';
import { until } from '../../src/until.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { callerOf } from './caller.ts';
import { type Cluster, NODE, programs, ROOT, secretOf, sh, workerStates } from './cluster.ts';
import { expectFilled } from './prepull.ts';
import { openService } from './services.ts';
import {
  clusterForAll,
  copyToNodes,
  copyToPod,
  expectNoCapability,
  installForTest,
  uninstallAfterTest,
} from './suite.ts';

const ROLLOUTS = 16;

let cluster: Cluster;
let policy: ScriptedPolicy;

clusterForAll(programs, { nodes: 1, turns: 1 }, (opened) => {
  ({ cluster, policy } = opened);
});

const install = (name: string, ...set: string[]) => installForTest(cluster, name, ...set);

test("mode node: a worker without capabilities uses the node's engine, and leaves nothing", async () => {
  const { socketPath } = await ensureDocker();
  const { tree, image } = await prepareSubject();
  await importTree(socketPath, tree, image);
  const mode = ['runtime.mode=node', `runtime.node.socket=${socketPath}`, 'worker.archives=null'];
  const pod = await install('engine', ...mode);
  const caller = await callerOf(cluster, 'engine');
  const from = Date.now();
  const run = await caller.submit(policy, ROLLOUTS, image);
  const lines = await caller.results(run, ROLLOUTS);
  await caller.expectWhole(lines, ROLLOUTS);
  console.log(`${ROLLOUTS} rollouts on the node's engine in ${Math.round((Date.now() - from) / 1000)} s`);
  await expectNoCapability(cluster, pod);
  const rollouts = words`ps -a --filter label=swefarm.rollout --format ${'{{.Label "swefarm.rollout"}}'}`;
  const left = async () => (await sh('docker', ...rollouts)).split('\n').filter((id) => id.startsWith(run));
  await until(async () => (await left()).length === 0, { what: 'no sandbox is left' });
});

/** Name of an image with Debian's Docker. */
const DIND = 'swefarm.test/dind:1';
async function importDocker(): Promise<void> {
  await sh('bash', 'testkit/kubernetes/base.sh', 'docker', DIND, 'docker.io,iptables');
  await copyToNodes(cluster, DIND);
}

test("mode docker: rollouts run in a Docker beside the worker, below its container's limits", async () => {
  await importDocker();
  const { socketPath } = await ensureDocker();
  const { tree, image } = await prepareSubject();
  await importTree(socketPath, tree, image);
  const resources = 'runtime.docker.resources';
  const pod = await install(
    'boxed',
    ...['runtime.mode=docker', `runtime.docker.image=${DIND}`, 'worker.archives=null'],
    ...[`${resources}.requests.cpu=100m`, `${resources}.requests.memory=256Mi`],
    ...[`${resources}.limits.cpu=2`, `${resources}.limits.memory=3Gi`],
    `worker.store.path=${join(cluster.folder, 'docker')}`,
  );
  const docker = words`exec -i ${pod} -c docker -- docker -H unix:///run/engine/docker.sock`;
  await copyToPod(cluster, image, docker);
  const caller = await callerOf(cluster, 'boxed');
  const from = Date.now();
  const run = await caller.submit(policy, ROLLOUTS, image);
  const groups = new Set<string>();
  const lines = await caller.results(run, ROLLOUTS, async () => {
    const found = await sh('find', '/sys/fs/cgroup/memory', '-path', '*/docker/*', '-type', 'd').catch(
      () => '',
    );
    for (const path of found.split('\n').filter((one) => one.includes('/kubepods/'))) groups.add(path);
  });
  await caller.expectWhole(lines, ROLLOUTS);
  console.log(
    `${ROLLOUTS} rollouts on Docker beside the worker in ${Math.round((Date.now() - from) / 1000)} s`,
  );
  const uid = await cluster.kubectl('get', pod, '-o', 'jsonpath={.metadata.uid}');
  expect([...groups].filter((path) => path.includes(uid))).not.toEqual([]);
  await expectNoCapability(cluster, pod);
  await until(async () => (await cluster.kubectl(...docker, 'ps', '-aq')) === '', {
    what: 'no sandbox is left',
  });
});

test.for(['rootfs-userns', 'podman'])(
  'mode %s on nodes without users of pods is refused by name, or the pod reports the reason',
  async (mode) => {
    const set = ['worker.replicas=1', `runtime.mode=${mode}`, 'runtime.podman.resources.requests.cpu=100m'];
    set.push('runtime.podman.resources.requests.memory=256Mi');
    const values = await cluster.values('denied', ...set);
    const install = (...more: string[]) =>
      cluster.helm('install', 'denied', 'helm/swefarm', ...values, ...more);
    await expect(install()).rejects.toThrow(/none does: node1 has containerd:\/\/1\./);
    uninstallAfterTest(cluster, 'denied');
    await install('--set', 'runtime.checkNodes=false');
    const name = async () => (await workerStates(cluster, 'denied'))[0]?.metadata.name;
    await until(async () => (await name()) !== undefined, { what: 'the pod is there' });
    const about = ['get', 'events', '--field-selector', `involvedObject.name=${await name()}`];
    const output = () => cluster.kubectl(...about, '-o', 'jsonpath={.items[*].message}');
    const why = 'hostUsers: false`, runtime does not support user namespaces';
    await until(async () => (await output()).includes(why), { what: 'the pod says why', withinMs: 60_000 });
    expect((await workerStates(cluster, 'denied')).map(({ status }) => status.phase)).toEqual(['Pending']);
  },
);

test.for(['job', 'daemonset'] as const)(
  'prepull as a %s fills the store from a volume of archives before rollouts need it',
  async (kind) => {
    await expectFilled(cluster, policy, kind, install);
  },
);

test('the API server accepts the example jobs, and they reach the gateway', async () => {
  await install('farm', 'gateway.hostNetwork=false', 'gateway.port=8080', 'worker.replicas=1');
  await using service = await openService(cluster, 'farm-swefarm-gateway');
  const TOKEN = await secretOf(cluster, 'farm-swefarm-gateway', 'token');
  const folder = temporaryFolder('job');
  const containers = await Promise.all(
    ['nemo-rl', 'verl', 'train'].map(async (name) => {
      const manifest = await readFile(join(ROOT, `helm/examples/${name}.yaml`), 'utf8');
      expect(await cluster.dryRun(manifest)).toContain(`job.batch/${name} created (server dry run)`);
      return parse(manifest).spec.template.spec.containers[0];
    }),
  );
  const [nemo, ...others] = containers;
  const variable = (container: typeof nemo, key: string): string =>
    container.env.find(({ name }: { name: string }) => name === key).value;

  // Replaces the trainer's program and prints its arguments.
  const uv = join(folder, 'uv');
  await writeFile(uv, '#!/bin/sh\necho "started: $*"\n', { mode: 0o755 });
  const env = { FARM: variable(nemo, 'FARM'), TOKEN, POD_IP: NODE, PATH: `${folder}:${process.env.PATH}` };
  const script = nemo.args[0].replaceAll('/tmp/gym.yaml', `${folder}/gym.yaml`);
  expect(await service.run(script, env)).toMatch(/^started: run examples\/nemo_gym\/run_grpo_nemo_gym.py/);
  const gym = parse(await readFile(join(folder, 'gym.yaml'), 'utf8'));
  const { host, port } = gym.swe_farm.responses_api_agents.swe_farm;
  const asked = await service.run('curl -s -o /dev/null -w "%{http_code}" "$URL"', {
    URL: `http://${host}:${port}/sd`,
  });
  expect(asked).toBe('200');

  const ask = 'curl -s -o /dev/null -w "%{http_code}" -H "authorization: Bearer $TOKEN" "$URL/sd"';
  for (const URL of others.map((container) => variable(container, 'SWEFARM_GATEWAY_URL'))) {
    expect(await service.run(ask, { URL, TOKEN })).toBe('200');
    expect(await service.run(ask, { URL, TOKEN: 'another' })).toBe('401');
  }

  const caller = await callerOf(cluster, 'farm', service.url);
  const run = await caller.submit(policy, 2);
  await caller.expectWhole(await caller.results(run, 2), 2);
});
