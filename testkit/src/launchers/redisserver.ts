/** Starts a redis-server process from lines of configuration, waits until it is up, and ends it with its owner. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { sleep } from '@swefarm/shared';

const START_MS = 30_000;

/** Resolves when `port` accepts connections; the returned function ends it with SIGKILL. Needs redis-server on PATH, which setup.sh installs. */
export async function startRedisServer(
  dir: string,
  name: string,
  port: number,
  lines: readonly string[],
  args: readonly string[] = [],
): Promise<() => Promise<void>> {
  const conf = join(dir, `${name}.conf`);
  await writeFile(conf, `${lines.join('\n')}\n`);
  const server = spawn('redis-server', [conf, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const output: Buffer[] = [];
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (text) => output.push(text));
  const ended = once(server, 'exit');
  const until = Date.now() + START_MS;
  while (!(await accepts(port))) {
    if (server.exitCode !== null || Date.now() > until) {
      server.kill('SIGKILL');
      throw new Error(`redis-server (${name}) did not start: ${Buffer.concat(output)}`);
    }
    await sleep(20);
  }
  return async () => {
    server.kill('SIGKILL');
    await ended;
  };
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => socket.destroy()).once('connect', () => socket.end());
  });
