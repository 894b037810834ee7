/** Runs jobs of Harbor 0.25.0 from PyPI on the engine of the benchmark. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { run, words } from '@swefarm/testkit';
import { samplePeakMemory } from '../account.ts';
import { SOCKET } from '../engine.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const INSTALLATION = join(ROOT, '.swefarm/cache/harbor-0.25.0');
/** Compose file that ends the containers of Harbor at once. Otherwise each stop waits for 10 s, because `sleep` ignores SIGTERM. */
const STOP_AT_ONCE = 'services:\n  main:\n    stop_grace_period: 0s\n';

export type JobGiven = {
  tasks: string;
  agent: 'oracle' | 'nop';
  attempts: number;
  parallel: number;
  /** Whether containers stop without the grace period. */
  stopAtOnce: boolean;
};

export type Trial = { task: string; rewards: Readonly<Record<string, number>>; from: number; to: number };
export type Job = {
  trials: Trial[];
  /** From the start of the first trial to the end of the last. Excludes the start of the command. */
  seconds: number;
  /** Peak memory of Harbor and its Docker clients. */
  peakMib: number;
};

export type Harbor = { run(given: JobGiven): Promise<Job> };

/** Installs Harbor unless it is installed. @param folder folder for jobs and logs. @throws Error of setup.sh */
export async function openHarbor(folder: string): Promise<Harbor> {
  await run('bash', [join(ROOT, 'testkit/clients/harbor/setup.sh'), INSTALLATION], { timeout: 30 * 60_000 });
  const compose = join(folder, 'stop.yaml');
  await writeFile(compose, STOP_AT_ONCE);
  const plugins = await readdir(join(INSTALLATION, 'docker/cli-plugins'));
  const env = {
    ...{ PATH: process.env.PATH, HOME: folder, DOCKER_HOST: `unix://${SOCKET}` },
    ...{ HARBOR_TELEMETRY: '0', NO_COLOR: '1', PYTHONWARNINGS: 'ignore' },
    ...(plugins.length > 0 && { DOCKER_CONFIG: join(INSTALLATION, 'docker') }),
  };
  let jobs = 0;
  return {
    async run({ tasks, agent, attempts, parallel, stopAtOnce }) {
      const name = `job-${++jobs}`;
      const args = words`run -p ${tasks} -a ${agent} -k ${attempts} -n ${parallel} --quiet --yes
        --jobs-dir ${join(folder, 'jobs')} --job-name ${name}`;
      const more = stopAtOnce ? ['--extra-docker-compose', compose] : [];
      const log = join(folder, `${name}.log`);
      await using output = await open(log, 'w');
      const child = spawn(join(INSTALLATION, 'venv/bin/harbor'), [...args, ...more], {
        ...{ cwd: folder, env, stdio: ['ignore', output.fd, output.fd] },
      });
      const kill = (): void => void child.kill('SIGKILL');
      process.once('exit', kill);
      using memory = samplePeakMemory(child.pid as number);
      await ended(child, log).finally(() => process.off('exit', kill));
      return { ...(await readJob(join(folder, 'jobs', name))), peakMib: memory.peakMib() };
    },
  };
}

async function ended(child: ChildProcess, log: string): Promise<void> {
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`harbor ended with ${code}: ${(await readFile(log, 'utf8')).slice(-2000)}`);
}

type TrialResult = {
  task_name: string;
  started_at: string;
  finished_at: string;
  verifier_result: { rewards: Record<string, number> } | null;
  exception_info: { exception_type: string; exception_message: string } | null;
};

/** @throws Error for a trial without a reward */
async function readJob(folder: string): Promise<Omit<Job, 'peakMib'>> {
  const trials: Trial[] = [];
  for (const name of (await readdir(folder)).filter((one) => one.includes('__'))) {
    const result = JSON.parse(await readFile(join(folder, name, 'result.json'), 'utf8')) as TrialResult;
    const { task_name, verifier_result, exception_info } = result;
    if (exception_info || !verifier_result)
      throw new Error(
        `harbor: ${name}: ${exception_info?.exception_type}: ${exception_info?.exception_message}`,
      );
    const [from, to] = [Date.parse(result.started_at), Date.parse(result.finished_at)];
    trials.push({ task: task_name.replace(/^.*\//, ''), rewards: verifier_result.rewards, from, to });
  }
  const first = Math.min(...trials.map(({ from }) => from));
  const last = Math.max(...trials.map(({ to }) => to));
  return { trials, seconds: (last - first) / 1000 };
}
