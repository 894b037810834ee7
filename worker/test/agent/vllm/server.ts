/** A real vLLM with a tiny random model, started by testkit/clients/vllm/up.sh, its metrics, and its log of prompts. */
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
  /** Returns the token ids of the logged prompts, by the id of the request. Needs `logIds`. */
  prompts(): Map<string, number[]>;
  kill(): void;
  /** Restarts on the same port, without the known fault. */
  restart(): Promise<void>;
};

export type VllmOptions = {
  /** Blocks of 32 tokens of KV. */
  blocks: number;
  /** Most tokens of prompt and answer; absent: 8192. */
  context?: number;
  /** Maximum number of concurrent requests; absent: 32. */
  sequences?: number;
  /** Whether the server logs the token ids of all prompts. */
  logIds?: boolean;
};

/** Starts vLLM with its known fault (SEED_CRASH): a preempted request with a seed kills the engine. */
export async function startVllm(
  folder: string,
  { blocks, context = 8192, sequences = 32, logIds = false }: VllmOptions,
): Promise<Vllm> {
  const port = await freePort();
  const up = (seedCrash: boolean) =>
    new Promise<void>((resolve, reject) => {
      const sizes = { PORT: port, BLOCKS: blocks, CONTEXT: context, SEQS: sequences };
      const named = Object.entries(sizes).map(([name, size]) => [name, String(size)]);
      const environment = {
        ...process.env,
        ...Object.fromEntries(named),
        ...(logIds ? { LOG_IDS: '1' } : {}),
      };
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
    prompts: () => promptsIn(readFileSync(join(folder, 'log'), 'utf8')),
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

function promptsIn(log: string): Map<string, number[]> {
  const lines = log.matchAll(/Request (cmpl-\S+)-\d+ details: .*prompt_token_ids: \[([\d, ]+)\]/g);
  return new Map(lines.map(([, id = '', ids = '']) => [id, ids.split(', ').map(Number)]));
}
