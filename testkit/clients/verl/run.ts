/**
 * Runs swefarm.trainers.verl inside a real verl (without its GPU parts) against a whole farm: gateway, worker and Redis as
 * processes, real containers. Run by hand: node testkit/clients/verl/run.ts [--venv DIR] [--runtime docker|rootfs] [--mode MODE...]
 * Installs the venv with ../trainers/setup.sh. Exits with 1 if a check fails.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { buildExamples } from '../../src/examples/build.ts';
import { gatewayUrl, runCommand, type Started, startCommand, words } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { run } from '../../src/launchers/run.ts';
import { untilTerminated } from '../../src/launchers/untilterminated.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { until } from '../../src/until.ts';

const { values } = parseArgs({
  options: {
    venv: { type: 'string', default: join(tmpdir(), 'swefarm-trainers') },
    runtime: { type: 'string', default: 'docker' },
    mode: { type: 'string', multiple: true, default: ['tools', 'loop', 'short', 'die'] },
  },
});
const HERE = import.meta.dirname;
const EXAMPLE = 'r1chardj0n3s__parse-1.20.2';
const EXAMPLES = join(HERE, '../../../examples/policy/examples.yaml');
const CONFIG = '../../../producer/python/swefarm/trainers/verl/config/agent_loop.yaml';
const TOKEN = 'a-token-of-this-run';
const LEASE_S = 60;
const OFFLINE = {
  CUDA_VISIBLE_DEVICES: '',
  HF_HUB_OFFLINE: '1',
  HF_DATASETS_OFFLINE: '1',
  TRANSFORMERS_OFFLINE: '1',
  TOKENIZERS_PARALLELISM: 'false',
  RAY_USAGE_STATS_ENABLED: '0',
};

type Facts = Record<string, unknown>;

const terminated = untilTerminated();
/** Child processes that are killed at the end. */
const helpers = new Set<ChildProcess>();

function helper(child: ChildProcess): void {
  helpers.add(child);
  child.once('close', () => helpers.delete(child));
}

function python(
  folder: string,
  mode: string,
  url: string,
  servers: readonly string[] = [],
): { child: ChildProcess; facts: Facts[]; exit: Promise<number> } {
  const child = spawn(
    join(String(values.venv), 'bin/python'),
    [join(HERE, 'check.py'), folder, mode, ...servers],
    {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        ...OFFLINE,
        SWEFARM_GATEWAY_URL: url,
        SWEFARM_GATEWAY_TOKEN: TOKEN,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  helper(child);
  const facts: Facts[] = [];
  let errors = '';
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (!line.startsWith('{"')) return;
    console.log(`  ${mode}: ${line.slice(0, 400)}`);
    facts.push(JSON.parse(line));
  });
  child.stderr.on('data', (text) => {
    errors = `${errors}${text}`.slice(-4000);
  });
  const exit = new Promise<number>((resolve) => {
    child.once('close', (code) => {
      if (code) console.log(errors);
      resolve(code ?? -1);
    });
  });
  return { child, facts, exit };
}

function require(promise: boolean, what: string): void {
  if (!promise) throw new Error(`broken: ${what}`);
}

/** Returns the number of sandboxes: folders rootfs-… in the scratch folder, or containers with the worker's label. */
async function sandboxes(scratch: string, worker: string): Promise<number> {
  if (values.runtime === 'rootfs') {
    return (await readdir(scratch)).filter((name) => name.startsWith('rootfs-')).length;
  }
  const { stdout } = await run('docker', ['ps', '-aq', '--filter', `label=swefarm.worker=${worker}`]);
  return stdout.split('\n').filter(Boolean).length;
}

const folder = await mkdtemp(join(tmpdir(), 'swefarm-verl-run-'));
await using redis = await startRedis();
// Stand in for two inference servers of verl. The second server replaces the first one during the test.
await using policy = await startScriptedPolicy({ script: EXAMPLES });
await using other = await startScriptedPolicy({ script: EXAMPLES });
const started: Started[] = [];
try {
  await Promise.race([terminated, checkAll()]);
} finally {
  for (const child of helpers) child.kill('SIGKILL');
  await Promise.all(started.map(({ stop }) => stop()));
  await rm(folder, { recursive: true, force: true });
}

async function install(): Promise<void> {
  const setup = spawn('bash', [join(HERE, '../trainers/setup.sh'), String(values.venv)], {
    stdio: ['ignore', 2, 2],
  });
  helper(setup);
  require((await new Promise((resolve) => setup.once('close', resolve))) === 0, 'verl is installed');
}

async function checkAll(): Promise<void> {
  await install();
  const runtime = values.runtime === 'rootfs' ? 'rootfs' : 'docker';
  const built = await buildExamples({ ids: [EXAMPLE], for: runtime, out: folder });
  await writeFile(join(folder, 'gold.patch'), built.rows[0]?.patch ?? '');
  // The package's own configuration: verl's load balancer supplies the addresses.
  const loop = await readFile(join(HERE, CONFIG), 'utf8');
  const echo = loop.replace('run: {}', 'run: {token_mode: echo, settings: {agent: {step_limit: 12}}}');
  const kept = echo
    .replace('name: swefarm', 'name: swefarm_keep')
    .replace('overlong: mask', 'overlong: keep');
  await writeFile(join(folder, 'agent_loop.yaml'), `${echo}${kept}`);
  await writeFile(join(folder, 'callers.yaml'), 'callers:\n  - {name: verl, token_env: VERL_TOKEN}\n');
  const env = {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_RUNTIME: runtime,
    SWEFARM_CONCURRENCY: '16',
    VERL_TOKEN: TOKEN,
  };
  const convert = words`dataset to-verl --dataset ${built.files.default} --output-dir ${folder} --val-share 0`;
  const converted = await runCommand('swefarm', convert, env);
  require(converted.code === 0, `the dataset is converted: ${converted.stderr}`);
  const name = `verl${process.pid}`;
  const worker = startCommand('swefarm-worker', words`run --worker-id ${name}`, env);
  const callers = join(folder, 'callers.yaml');
  const gateway = startCommand('swefarm', words`serve --port 0 --gateway-callers ${callers}`, env);
  started.push(worker, gateway);
  await worker.until(/"msg":"ready"/);
  const url = await gatewayUrl(gateway);

  const isEmpty = async () => (await sandboxes(env.SWEFARM_SCRATCH_DIR, name)) === 0;
  const addresses = [policy, other].map(({ port }) => `127.0.0.1:${port}`);
  for (const mode of ['tools', 'loop', 'short'].filter((one) => values.mode.includes(one))) {
    const from = performance.now();
    const check = python(folder, mode, url, mode === 'tools' ? [] : addresses);
    require((await check.exit) === 0, mode);
    const releasedMs = await until(isEmpty, { withinMs: 60_000, pauseMs: 500, what: 'all are released' });
    require(mode !== 'loop' || other.stats().requests > 0, 'the server that came is asked');
    console.log(
      `ok ${mode}: ${((performance.now() - from) / 1000).toFixed(1)} s, released after ${(releasedMs / 1000).toFixed(1)} s`,
    );
  }

  if (!values.mode.includes('die')) return;
  const dying = python(folder, 'die', url);
  const isWorking = () => dying.facts.some((fact) => fact.state === 'working');
  await until(isWorking, { withinMs: 300_000, pauseMs: 500, what: 'all trajectories work' });
  const before = await sandboxes(env.SWEFARM_SCRATCH_DIR, name);
  require(before >= 16, `16 sandboxes run, found ${before}`);
  dying.child.kill('SIGKILL');
  const goneMs = await until(isEmpty, {
    withinMs: (LEASE_S + 60) * 1000,
    pauseMs: 500,
    what: 'all are gone',
  });
  console.log(
    `ok die: ${before} containers of the killed trainer were gone after ${(goneMs / 1000).toFixed(1)} s (lease ${LEASE_S} s)`,
  );
}
