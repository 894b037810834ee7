/** Rollouts on the node's own engine and on a Docker beside the worker, stores that prepull fills from archives, and jobs of trainers that call the gateway's Service. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { NO_TOOLS } from '../../helm/render.ts';
import { importTree } from '../../src/images/import.ts';
import { prepareSubject } from '../../src/images/subject.ts';
import { ensureDocker } from '../../src/launchers/docker.ts';
import type { ScriptedPolicy } from '../../src/policy/server.ts';
import { until } from '../../src/until.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { callerOf, startPolicy } from './caller.ts';
import {
  type Cluster,
  NODE,
  openCluster,
  programs,
  ROOT,
  sh,
  untilWorkers,
  workerPods,
  workerStates,
} from './cluster.ts';
import { expectFilled } from './prepull.ts';
import { openService } from './services.ts';

const ROLLOUTS = 16;

let cluster: Cluster;
let policy: ScriptedPolicy;

beforeEach(({ skip }) => skip(programs === null, NO_TOOLS));
beforeAll(async () => {
  if (programs === null) return;
  cluster = await openCluster(1);
  policy = await startPolicy(1);
}, 900_000);
afterAll(async () => {
  await policy?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
}, 120_000);

/** Installs a release for one test. */
async function install(name: string, ...set: string[]): Promise<void> {
  const values = await cluster.values(name, 'worker.replicas=1', ...set);
  onTestFinished(async () => {
    await cluster.helm('uninstall', name, '--wait', '--timeout', '120s');
  }, 150_000);
  await cluster.helm('install', name, 'helm/swefarm', ...values, '--wait', '--timeout', '180s');
  await untilWorkers(cluster, 1, name);
}

test('mode node: a worker without any capability runs rollouts on the engine whose socket the node gives it, and leaves nothing there', async () => {
  const { socketPath } = await ensureDocker();
  const { tree, image } = await prepareSubject();
  await importTree(socketPath, tree, image);
  await install('engine', 'runtime.mode=node', `runtime.node.socket=${socketPath}`, 'worker.archives=null');
  const caller = await callerOf(cluster, 'engine');
  const from = Date.now();
  const run = await caller.submit(policy, ROLLOUTS, image);
  const lines = await caller.results(run, ROLLOUTS);
  await caller.expectWhole(lines, ROLLOUTS);
  console.log(`${ROLLOUTS} rollouts on the node's engine in ${Math.round((Date.now() - from) / 1000)} s`);
  const [pod = ''] = await workerPods(cluster, 'engine');
  const status = await cluster.kubectl('exec', pod, '--', 'cat', '/proc/1/status');
  expect(status).toMatch(/^CapEff:\s+0+$/m);
  const rollouts = [
    'ps',
    '-a',
    '--filter',
    'label=swefarm.rollout',
    '--format',
    '{{.Label "swefarm.rollout"}}',
  ];
  const left = async () => (await sh('docker', ...rollouts)).split('\n').filter((id) => id.startsWith(run));
  await until(async () => (await left()).length === 0, { what: 'no sandbox is left' });
});

/** An image with Debian's Docker, on the nodes. */
const DIND = 'swefarm.test/dind:1';
async function importDocker(): Promise<void> {
  await sh('bash', 'testkit/kubernetes/base.sh', 'docker', DIND, 'docker.io,iptables');
  const archive = join(cluster.folder, 'dind.tar');
  await sh('docker', 'save', '-o', archive, DIND);
  await cluster.script('images', archive);
  await rm(archive);
}

test('mode docker: rollouts run in a Docker beside the worker, below the limits of its container', async () => {
  await importDocker();
  const { socketPath } = await ensureDocker();
  const { tree, image } = await prepareSubject();
  await importTree(socketPath, tree, image);
  const resources = 'runtime.docker.resources';
  await install(
    'boxed',
    ...['runtime.mode=docker', `runtime.docker.image=${DIND}`, 'worker.archives=null'],
    ...[`${resources}.requests.cpu=100m`, `${resources}.requests.memory=256Mi`],
    ...[`${resources}.limits.cpu=2`, `${resources}.limits.memory=3Gi`],
    `worker.store.path=${join(cluster.folder, 'docker')}`,
  );
  const [pod = ''] = await workerPods(cluster, 'boxed');
  const docker = ['exec', '-i', pod, '-c', 'docker', '--', 'docker', '-H', 'unix:///run/engine/docker.sock'];
  const load = ['kubectl', `--kubeconfig=${cluster.kubeconfig}`, '-n', 'rl', ...docker, 'load'].join(' ');
  await sh('bash', '-o', 'pipefail', '-c', `docker save ${image} | ${load}`);
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
  expect(await cluster.kubectl('exec', pod, '-c', 'worker', '--', 'cat', '/proc/1/status')).toMatch(
    /^CapEff:\s+0+$/m,
  );
  await until(async () => (await cluster.kubectl(...docker, 'ps', '-aq')) === '', {
    what: 'no sandbox is left',
  });
});

test.for(['rootfs-userns', 'podman'])(
  'mode %s on nodes that give pods no users of their own: refused by their names; where they are not asked, no container starts, and its pod says why',
  async (mode) => {
    const set = ['worker.replicas=1', `runtime.mode=${mode}`, 'runtime.podman.resources.requests.cpu=100m'];
    set.push('runtime.podman.resources.requests.memory=256Mi');
    const values = await cluster.values('denied', ...set);
    const install = (...more: string[]) =>
      cluster.helm('install', 'denied', 'helm/swefarm', ...values, ...more);
    await expect(install()).rejects.toThrow(/none does: node1 has containerd:\/\/1\./);
    onTestFinished(async () => {
      await cluster.helm('uninstall', 'denied', '--wait', '--timeout', '120s');
    }, 150_000);
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

test('the jobs of NeMo RL and verl are taken by the API server, and what they do before training reaches the gateway by its Service', async () => {
  await install('farm', 'gateway.hostNetwork=false', 'gateway.port=8080', 'worker.replicas=1');
  await using service = await openService(cluster, 'farm-swefarm-gateway');
  const secret = await cluster.kubectl(
    'get',
    'secret',
    'farm-swefarm-gateway',
    '-o',
    'jsonpath={.data.token}',
  );
  const TOKEN = Buffer.from(secret, 'base64').toString();
  const folder = temporaryFolder('job');
  const containers = await Promise.all(
    ['nemo-rl', 'verl'].map(async (name) => {
      const manifest = await readFile(join(ROOT, `helm/examples/${name}.yaml`), 'utf8');
      expect(await cluster.dryRun(manifest)).toContain(`job.batch/${name} created (server dry run)`);
      return parse(manifest).spec.template.spec.containers[0];
    }),
  );
  const [nemo, verl] = containers;
  const variable = (container: typeof nemo, key: string): string =>
    container.env.find(({ name }: { name: string }) => name === key).value;

  // In place of the trainer's own program: it says that it was reached.
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

  const url = variable(verl, 'SWEFARM_GATEWAY_URL');
  const ask = 'curl -s -o /dev/null -w "%{http_code}" -H "authorization: Bearer $TOKEN" "$URL/sd"';
  expect(await service.run(ask, { URL: url, TOKEN })).toBe('200');
  expect(await service.run(ask, { URL: url, TOKEN: 'another' })).toBe('401');

  const caller = await callerOf(cluster, 'farm', service.url);
  const run = await caller.submit(policy, 2);
  await caller.expectWhole(await caller.results(run, 2), 2);
});
