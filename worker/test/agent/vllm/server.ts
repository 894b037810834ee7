/** A real vLLM with a tiny random model, started by testkit/clients/vllm/up.sh, and its metrics. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '@swefarm/shared';

const UP = fileURLToPath(new URL('../../../../testkit/clients/vllm/up.sh', import.meta.url));

export type Vllm = AsyncDisposable & {
  /** Ends in /v1. */
  readonly url: string;
  /** A number of /metrics, summed over labels; null when the server does not answer. */
  metric(name: string): Promise<number | null>;
  kill(): void;
  /** Restarts on the same port, without the known fault. */
  restart(): Promise<void>;
};

/** Starts vLLM with its known fault (SEED_CRASH): a preempted request with a seed kills the engine. */
export async function startVllm(folder: string, blocks: number): Promise<Vllm> {
  const port = await freePort();
  const up = (seedCrash: boolean) =>
    new Promise<void>((resolve, reject) => {
      const environment = { ...process.env, PORT: String(port), BLOCKS: String(blocks) };
      const child = spawn('bash', [UP, folder], {
        env: { ...environment, ...(seedCrash ? { SEED_CRASH: '1' } : {}) },
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      child.on('error', reject);
      child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`up.sh ended with ${code}`))));
    });
  const kill = () => {
    try {
      process.kill(-Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  const url = `http://127.0.0.1:${port}/v1`;
  await up(true);
  return {
    url,
    kill,
    restart: () => up(false),
    async metric(name) {
      const response = await fetch(url.replace('/v1', '/metrics')).catch(() => null);
      if (!response?.ok) return null;
      const lines = (await response.text()).split('\n').filter((line) => line.startsWith(`${name}{`));
      return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
    },
    async [Symbol.asyncDispose]() {
      kill();
      await sleep(100);
    },
  };
}
