/** The chart on a real control plane and two real nodes: 64 rollouts under faults, probes, and what is left. Needs root, Docker, and tools.sh. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '@swefarm/shared';
import {
  ensureDocker,
  prepareSubject,
  type ScriptedPolicy,
  startScriptedPolicy,
  until,
} from '@swefarm/testkit';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { NO_TOOLS, toolsOf } from '../helm/render.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const CLUSTER = join(ROOT, 'testkit/kubernetes/cluster.sh');
const NODE = '10.99.1.1';
const GATEWAY = `http://${NODE}:28080`;
const ROLLOUTS = 64;
const WORKERS = 'app.kubernetes.io/instance=farm,app.kubernetes.io/component=worker';
const PREFIX = 'swefarm.test/swefarm-';
const run = promisify(execFile);
const sh = async (command: string, ...args: string[]): Promise<string> =>
  (await run(command, args, { cwd: ROOT, maxBuffer: 1 << 26 })).stdout.trim();

let folder = '';
const bin = toolsOf('helm', 'control') ?? '';
let policy: ScriptedPolicy | undefined;
const cluster = (): string => join(folder, 'cluster');
const kubectl = (...args: string[]): Promise<string> =>
  sh('kubectl', `--kubeconfig=${cluster()}/admin.kubeconfig`, '-n', 'rl', ...args);
const helm = (...args: string[]): Promise<string> =>
  sh(join(bin, 'helm'), `--kubeconfig=${cluster()}/admin.kubeconfig`, '-n', 'rl', ...args);
let values: string[] = [];

async function makeImages(): Promise<string[]> {
  await sh('bash', 'testkit/kubernetes/base.sh', 'docker', 'swefarm.test/redis:1');
  const out = join(folder, 'images');
  const given = [
    '--engine',
    'docker',
    '--base',
    'swefarm.test/redis:1',
    '--prefix',
    PREFIX,
    '--tag',
    'ci',
    '--out',
    out,
  ];
  await sh('node', 'docker/build.mjs', ...given);
  await sh('docker', 'save', '-o', join(out, 'redis.tar'), 'swefarm.test/redis:1');
  return ['worker', 'gateway', 'redis'].map((name) => join(out, `${name}.tar`));
}

/** Even rollouts mend the bug, odd ones do not; each takes some seconds. */
const SCRIPT = () => {
  const wait = { command: 'sleep 2', repeat: 8 };
  const edit = (by: string) => ({ command: `sed -i 's/return a - b/return ${by}/' calc/ops.py`, repeat: 1 });
  const submit = { submit: true as const, repeat: 1 };
  return {
    conversations: [
      {
        variants: [
          [wait, edit('a + b'), submit],
          [wait, edit('b - a'), submit],
        ],
      },
    ],
  };
};

beforeEach(({ skip }) => skip(bin === '', NO_TOOLS));
beforeAll(async () => {
  if (bin === '') return;
  await ensureDocker();
  // Short, and on the disk: sockets have paths of 107 characters at most, and overlays cannot lie on overlays.
  folder = await mkdtemp('/var/tmp/swefarm-k-');
  const archives = await makeImages();
  await sh('bash', CLUSTER, 'start', cluster(), '2');
  await sh('bash', CLUSTER, 'images', cluster(), ...archives);
  policy = await startScriptedPolicy({ script: SCRIPT(), host: NODE });
  const { tree } = await prepareSubject();
  for (const name of ['store', 'redis']) await mkdir(join(folder, name));
  values = ['-f', 'testkit/kubernetes/values.yaml'].concat(
    [
      `worker.store.path=${folder}/store`,
      `redis.volume.path=${folder}/redis`,
      `worker.archives.hostPath.path=${dirname(tree)}`,
    ].flatMap((one) => ['--set', one]),
  );
}, 900_000);

afterAll(async () => {
  await policy?.[Symbol.asyncDispose]();
  if (folder === '') return;
  await sh('bash', CLUSTER, 'stop', cluster());
  await rm(folder, { recursive: true, force: true });
}, 120_000);

type Line = { rollout_id: string; outcome: string; report?: { resolved?: boolean } | null };
type Results = { results: Line[]; last_id: string };

const tokenOf = async (release: string): Promise<string> =>
  Buffer.from(
    await kubectl('get', 'secret', `${release}-swefarm-gateway`, '-o', 'jsonpath={.data.token}'),
    'base64',
  ).toString();

/** Submits rollouts of one instance; returns the id of their run. */
async function submit(token: string, instance: object, count: number, gateway = GATEWAY): Promise<string> {
  const submitted = await ask(
    token,
    '/v1/runs',
    {
      instances: [instance],
      group_size: count,
      run: { policy: { urls: [policy?.url], model: 'scripted' }, sandbox: { memory_bytes: 268_435_456 } },
    },
    gateway,
  );
  const text = await submitted.text();
  expect(submitted.status, text).toBe(201);
  return (JSON.parse(text) as { run_id: string }).run_id;
}

async function ask(token: string, path: string, body?: object, gateway = GATEWAY): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return await fetch(
    `${gateway}${path}`,
    body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers },
  );
}

const workers = async (): Promise<string[]> =>
  (await kubectl('get', 'pods', '-l', WORKERS, '--field-selector=status.phase=Running', '-o', 'name')).split(
    '\n',
  );
const readyWorkers = async (): Promise<number> => {
  const states = await kubectl(
    'get',
    'pods',
    '-l',
    WORKERS,
    '-o',
    'jsonpath={range .items[*]}{.status.containerStatuses[0].ready}{"\\n"}{end}',
  );
  return states.split('\n').filter((state) => state === 'true').length;
};

/** What happens once so many results are there. */
const FAULTS: [at: number, name: string, strike: () => Promise<unknown>][] = [
  [
    6,
    'a worker’s pod is killed',
    async () => kubectl('delete', (await workers())[0] ?? '', '--grace-period=0', '--force'),
  ],
  [16, 'the pod of Redis is killed', () => kubectl('delete', 'pod', 'farm-swefarm-redis-0')],
  [
    26,
    'helm upgrade',
    () => helm('upgrade', 'farm', 'helm/swefarm', ...values, '--set', 'worker.podAnnotations.version=two'),
  ],
  [
    36,
    'a worker’s process is killed, and started again in its pod',
    async () =>
      kubectl('exec', (await workers())[0] ?? '', '--', 'sh', '-c', 'kill -9 $(cat /proc/1/task/1/children)'),
  ],
  [
    48,
    'a node is drained',
    () => kubectl('drain', 'node2', '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=120s'),
  ],
];

test('the API server takes the chart, strictly, and installs it', async () => {
  await kubectl('create', 'namespace', 'rl');
  const manifest = await helm('template', 'farm', 'helm/swefarm', ...values, '--kube-version', 'v1.33.13');
  const child = run('kubectl', [
    `--kubeconfig=${cluster()}/admin.kubeconfig`,
    '-n',
    'rl',
    'apply',
    '--dry-run=server',
    '--validate=strict',
    '-f',
    '-',
  ]);
  child.child.stdin?.end(manifest);
  expect((await child).stdout).toContain('deployment.apps/farm-swefarm-worker created (server dry run)');
  await helm('install', 'farm', 'helm/swefarm', ...values, '--wait', '--timeout', '180s');
  await until(async () => (await readyWorkers()) === 2, { what: 'two workers are ready' });
});

test('64 rollouts under faults: each has one result with its artifact, and the API server hears of none', async () => {
  const token = await tokenOf('farm');
  const { instance } = await prepareSubject();
  const run_id = await submit(token, { ...instance, image: 'dir:/archives/tree' }, ROLLOUTS);
  const lines: Line[] = [];
  const faults = [...FAULTS];
  let after = '';
  const from = Date.now();
  while (lines.length < ROLLOUTS && Date.now() - from < 900_000) {
    const answer = await ask(
      token,
      `/v1/runs/${run_id}/results?wait_seconds=3${after && `&after=${after}`}`,
    ).catch(() => null);
    if (!answer?.ok) {
      // 503: Redis or the gateway is away. Anything else would stay so.
      expect([undefined, 503]).toContain(answer?.status);
      await sleep(1_000);
      continue;
    }
    const { results, last_id } = (await answer.json()) as Results;
    lines.push(...results);
    after = last_id;
    const [next] = faults;
    if (next && lines.length >= next[0]) {
      faults.shift();
      console.log(`${Math.round((Date.now() - from) / 1000)} s, ${lines.length} results: ${next[1]}`);
      await next[2]();
    }
  }
  console.log(`${Math.round((Date.now() - from) / 1000)} s: ${lines.length} results`);
  expect(faults).toEqual([]);
  expect(lines).toHaveLength(ROLLOUTS);
  expect(new Set(lines.map(({ rollout_id }) => rollout_id)).size).toBe(ROLLOUTS);
  expect(lines.filter(({ outcome }) => outcome !== 'judged')).toEqual([]);
  for (const { rollout_id } of lines) {
    const artifact = await ask(token, `/v1/rollouts/${rollout_id}/artifact`);
    expect(artifact.status, rollout_id).toBe(200);
    const { report } = (await artifact.json()) as { report: { resolved: boolean } };
    expect(report.resolved, rollout_id).toBe(Number(rollout_id.split('.').at(-1)) % 2 === 0);
  }
  const audit = await readFile(join(cluster(), 'run/audit.log'), 'utf8');
  expect(audit).not.toContain('system:serviceaccount:rl:');
});

test('ready fails while Redis is away and comes back with it; nobody is started again for it', async () => {
  await kubectl('uncordon', 'node2');
  await until(async () => (await readyWorkers()) >= 2, { what: 'two workers are ready' });
  const restarts = () =>
    kubectl(
      'get',
      'pods',
      '-l',
      WORKERS,
      '-o',
      'jsonpath={.items[*].status.containerStatuses[0].restartCount}',
    );
  const before = await restarts();
  await kubectl('scale', 'statefulset/farm-swefarm-redis', '--replicas=0');
  await until(async () => (await readyWorkers()) === 0, { what: 'no worker is ready' });
  await kubectl('scale', 'statefulset/farm-swefarm-redis', '--replicas=1');
  await until(async () => (await readyWorkers()) >= 2, { what: 'two workers are ready again' });
  expect(await restarts()).toBe(before);
});

test('nothing is left on the nodes: no sandbox, no mount, no control group', async () => {
  await helm('uninstall', 'farm', '--wait', '--timeout', '120s');
  await until(async () => (await kubectl('get', 'pods', '-o', 'name')) === '', { what: 'no pod is left' });
  const mounts = (await readFile('/proc/mounts', 'utf8'))
    .split('\n')
    .filter((line) => /\/scratch\/|rootfs-\w+\/merged/.test(line) && line.includes(folder));
  expect(mounts).toEqual([]);
  const find = (...args: string[]) => sh('find', ...args).catch(() => '');
  expect(await find('/sys/fs/cgroup', '-path', '*swefarm-node*', '-name', 'rootfs-*')).toBe('');
  expect(await find(cluster(), '-path', '*/volumes/*', '-name', 'rootfs-*')).toBe('');
});
