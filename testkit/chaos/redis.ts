/** The Redis of the chaos farm: one of ours that is killed and restarted, or one that `swefarm redis` leads, with a standby. */

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '@swefarm/shared';
import { type Started, startCommand, words } from '../src/launchers/commands.ts';
import { startRedis } from '../src/launchers/redis.ts';

export type ChaosRedis = AsyncDisposable & {
  /** How the farm is told of it. */
  readonly url: string;
  /** The server of now, as its operator reaches it. */
  server(): Promise<{ pid: number; url: string }>;
  cli(...words: string[]): Promise<string>;
  /** SIGKILL, and up again from its append-only file after `downMs`. */
  outage(downMs: number): Promise<void>;
  /** The leader is told to end and the standby takes over; null: nobody stands by. */
  failover: (() => Promise<void>) | null;
  log(): string;
};

const run = promisify(execFile);

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

/** Two hosts' worth of `swefarm redis` on this one: who leads, and who stands by. */
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
      // Its leader starts it again as soon as it is gone: silent first, for as long as it is to be away.
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
