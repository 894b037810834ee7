/** The Redis of the chaos farm: a single server that is killed and restarted, or one that `swefarm redis` leads, with a standby. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@swefarm/shared';
import { type Started, startCommand, words } from '../src/launchers/commands.ts';
import { startRedis } from '../src/launchers/redis.ts';
import { run } from '../src/launchers/run.ts';

export type ChaosRedis = AsyncDisposable & {
  /** Value of `redis_url` for the farm. */
  readonly url: string;
  /** Returns the current server, with a URL for operators. */
  server(): Promise<{ pid: number; url: string }>;
  cli(...words: string[]): Promise<string>;
  /** Kills the server, which is up again from its append-only file after `downMs`. */
  outage(downMs: number): Promise<void>;
  /** Stops the leader, and waits until the standby leads; null: there is no standby. */
  failover: (() => Promise<void>) | null;
  log(): string;
};

async function cliAt(url: string, words: readonly string[]): Promise<string> {
  const { port, password } = new URL(url);
  const { stdout } = await run('redis-cli', ['-p', port, ...words], {
    env: { ...process.env, REDISCLI_AUTH: password },
    maxBuffer: 64 * 1024 ** 2,
  });
  return stdout.trim();
}

export async function aloneRedis(dir: string): Promise<ChaosRedis> {
  const redis = await startRedis({ dir });
  return {
    url: redis.url,
    server: async () => ({ pid: redis.pid(), url: redis.url }),
    cli: (...words) => cliAt(redis.url, words),
    async outage(downMs) {
      await redis.kill();
      await sleep(downMs);
      await redis.restart();
    },
    failover: null,
    log: () => '',
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}

type Mark = { pid: number; port: number; password: string };

/** Starts two `swefarm redis` as if on two hosts: a leader and a standby. */
export async function ledRedis(folder: string): Promise<ChaosRedis> {
  const all: Started[] = [];
  const start = (): { command: Started; localDir: string } => {
    const localDir = join(folder, `host-${all.length + 1}`);
    const options = words`redis --dir ${join(folder, 'shared')} --local-dir ${localDir} --host 127.0.0.1
      --node host-${all.length + 1} --standby`;
    const command = startCommand('swefarm', options, { SWEFARM_STATE_DIR: join(folder, 'state') });
    all.push(command);
    return { command, localDir };
  };
  let leader = start();
  await leader.command.until(/"epoch"/);
  let standby = start();
  const markOf = async (): Promise<Mark> =>
    JSON.parse(await readFile(join(leader.localDir, 'server.json'), 'utf8')) as Mark;
  const server = async () => {
    const { pid, port, password } = await markOf();
    return { pid, url: `redis://:${password}@127.0.0.1:${port}` };
  };
  return {
    url: `file:${join(folder, 'shared', 'address.json')}`,
    server,
    cli: async (...words) => cliAt((await server()).url, words),
    async outage(downMs) {
      const { pid } = await server();
      // The leader restarts a dead server at once, so the server is stopped for the outage and then killed.
      process.kill(pid, 'SIGSTOP');
      await sleep(downMs);
      process.kill(pid, 'SIGKILL');
      while ((await markOf().catch(() => null))?.pid === pid) await sleep(50);
    },
    async failover() {
      const code = await leader.command.stop();
      if (code !== 0) throw new Error(`the leader ended with ${code}: ${leader.command.stderr()}`);
      leader = standby;
      await leader.command.until(/"epoch"/);
      standby = start();
    },
    log: () => all.map((one) => one.stdout() + one.stderr()).join('\n'),
    async [Symbol.asyncDispose]() {
      for (const { command } of [standby, leader]) await command.stop();
    },
  };
}
