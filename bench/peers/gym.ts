/**
 * NeMo Gym from PyPI with its mini-swe-agent and its Docker sandboxes: its servers and Ray are up before the clock starts, rows are posted
 * to the agent's own `/run`, and the tests run in the container in which the agent worked.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, symlink } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { freePort, sleep } from '@swefarm/shared';
import { ensureVenv } from '../venv.ts';
import { type Peer, secondsSince } from './peer.ts';
import type { Row, Scene } from './scene.ts';

const VERSION = '0.7.0';
/** It asks for Python 3.13.14 and works on 3.13.0. The packages after it are those with which its parts agree, whatever pip says of them. */
const INSTALLS = [
  ['--ignore-requires-python', `nemo-gym[sandbox]==${VERSION}`, 'mini-swe-agent==2.1.0', 'swebench==4.1.0'],
  ['litellm==1.83.14'],
  ['openai==2.44.0', 'click>=8.2', 'huggingface_hub>=1.31,<2', 'aiohttp>=3.14.4'],
];
const AGENT = 'mini_swe_agent_2';
/** Each would get an environment of its own; all of them take the one that is there. */
const SERVERS = [
  'environment_servers/legacy_agent',
  `responses_api_agents/${AGENT}`,
  'responses_api_models/vllm_model',
];
/** Ray and four servers on two cores. */
const START_MS = 300_000;
const STOP_MS = 30_000;
/** One rollout with its tests; the first loads what Ray's processes need. */
const RUN_MS = 300_000;

export async function nemoGym(scene: Scene, stack: AsyncDisposableStack): Promise<Peer[]> {
  const python = await findPython();
  const venv = await ensureVenv({ name: `nemo-gym-${VERSION}`, installs: INSTALLS, python });
  const url = await startGym(scene, venv, stack);
  const warmed = new Set<number>();
  return [
    {
      ...{ name: `NeMo Gym ${VERSION}`, work: 'graded', counts: 'its servers are up' },
      // Ray's processes load what they need with their first rollouts.
      async prepare(parallel) {
        if (!warmed.has(parallel)) await postAll(url, scene, scene.rows(parallel), parallel);
        warmed.add(parallel);
      },
      run: (count, parallel) => postAll(url, scene, scene.rows(count), parallel),
    },
  ];
}

/** A Python 3.13 of pyenv, or whatever goes by its name. */
async function findPython(): Promise<string> {
  const versions = join(homedir(), '.pyenv/versions');
  const found = (await readdir(versions).catch(() => [])).filter((name) => name.startsWith('3.13')).sort();
  const last = found.at(-1);
  return last === undefined ? 'python3.13' : join(versions, last, 'bin/python');
}

/** URL of the agent's server. Ends with what it started when the stack does. */
async function startGym(
  { folder, policy }: Scene,
  venv: string,
  stack: AsyncDisposableStack,
): Promise<string> {
  const home = join(folder, 'gym');
  for (const server of SERVERS) {
    await mkdir(join(home, server), { recursive: true });
    await symlink(venv, join(home, server, '.venv'));
  }
  const head = await freePort();
  const packages = join(venv, 'lib/python3.13/site-packages');
  const args = [
    ...['env', 'start', '--config', join(packages, `responses_api_agents/${AGENT}/configs/${AGENT}.yaml`)],
    ...['--config', join(packages, 'nemo_gym/sandbox/providers/docker/configs/docker.yaml')],
    ...['--model-type', 'vllm_model', '--model', 'scripted', '--model-url', policy.url],
    ...['--model-api-key', 'none', '++skip_venv_if_present=true', `++uv_venv_dir=${home}`],
    ...['++default_host=127.0.0.1', '++head_server.host=127.0.0.1', `++head_server.port=${head}`],
  ];
  const child = spawn(join(venv, 'bin/gym'), args, {
    ...{ cwd: home, detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: environment(venv, home) },
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      said = `${said}${text}`.slice(-20_000);
    });
  const ended = once(child, 'close');
  const signal = (name: NodeJS.Signals): void => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, name);
  };
  const kill = (): void => signal('SIGKILL');
  process.once('exit', kill);
  stack.defer(async () => {
    process.off('exit', kill);
    // Gym ends Ray in order when it is interrupted.
    signal('SIGINT');
    await Promise.race([ended, sleep(STOP_MS)]);
    kill();
  });
  const until = performance.now() + START_MS;
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${head}/readyz`).catch(() => null);
    if (answer?.ok) break;
    if (child.exitCode !== null || performance.now() > until)
      throw new Error(`gym env start does not come up: ${said.slice(-1_500)}`);
    await sleep(500);
  }
  const servers = (await (await fetch(`http://127.0.0.1:${head}/server_instances`)).json()) as {
    process_name: string;
    url?: string;
  }[];
  const agent = servers.find(({ process_name }) => process_name === AGENT);
  if (agent?.url === undefined) throw new Error(`Gym has no server ${AGENT}: ${JSON.stringify(servers)}`);
  return agent.url;
}

const environment = (venv: string, home: string): NodeJS.ProcessEnv => ({
  ...{ PATH: `${join(venv, 'bin')}:${process.env.PATH ?? ''}`, HOME: home },
  ...{ HF_HUB_OFFLINE: '1', HF_DATASETS_OFFLINE: '1', DO_NOT_TRACK: '1', WANDB_MODE: 'disabled' },
  ...{ RAY_USAGE_STATS_ENABLED: '0', RAY_ENABLE_UV_RUN_RUNTIME_ENV: '0', RAY_ADDRESS: '' },
  // Where it is unset Ray listens on all addresses of the machine.
  RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER: '0',
  ...{ MSWEA_CONFIGURED: 'true', MSWEA_SILENT_STARTUP: '1', LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
  ...{ NO_PROXY: '127.0.0.1,localhost', no_proxy: '127.0.0.1,localhost' },
});

/** Seconds for all rows, `parallel` at a time. Each must be resolved. */
async function postAll(
  url: string,
  { policy }: Scene,
  rows: readonly Row[],
  parallel: number,
): Promise<number> {
  const left = [...rows];
  const from = performance.now();
  const lane = async (): Promise<void> => {
    for (let row = left.shift(); row !== undefined; row = left.shift()) {
      const body = {
        ...{ ...row, subset: 'verified', split: 'test', policy_base_url: policy.url, policy_api_key: 'none' },
        responses_create_params: { input: [], temperature: 0.6, top_p: 0.95 },
      };
      const headers = { 'content-type': 'application/json' };
      const signal = AbortSignal.timeout(RUN_MS);
      const answer = await fetch(`${url}/run`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
        signal,
      });
      const text = await answer.text();
      const reward = answer.ok ? (JSON.parse(text) as { reward?: number }).reward : null;
      if (reward !== 1)
        throw new Error(`Gym answers ${answer.status}, reward ${reward}: ${text.slice(-500)}`);
    }
  };
  await Promise.all(Array.from({ length: parallel }, lane));
  return secondsSince(from);
}
