/** A Redis as SECURITY.md asks for it: users from an ACL file, TLS on request; nobody gets in without a password. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@swefarm/shared';
import type { Certificates } from './certificates.ts';

export interface SecuredRedis extends AsyncDisposable {
  /** `redis://127.0.0.1:PORT`, or with TLS `rediss://localhost:PORT`; neither user nor password. */
  readonly url: string;
  readonly port: number;
}

const START_MS = 30_000;

/** With `tls` there is no plain port. Needs redis-server on PATH, which setup.sh installs. */
export async function startSecuredRedis(options: {
  aclFile: string;
  tls?: Certificates;
}): Promise<SecuredRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'swefarm-secured-'));
  const port = await freePort();
  const { tls } = options;
  const lines = [
    'bind 127.0.0.1',
    `dir "${dir}"`,
    'appendonly yes',
    'maxmemory-policy noeviction',
    `aclfile ${options.aclFile}`,
    ...(tls
      ? ['port 0', `tls-port ${port}`, `tls-cert-file ${tls.cert}`, `tls-key-file ${tls.key}`].concat([
          `tls-ca-cert-file ${tls.ca}`,
          'tls-auth-clients no',
        ])
      : [`port ${port}`]),
  ];
  await writeFile(join(dir, 'redis.conf'), `${lines.join('\n')}\n`);
  const server = spawn('redis-server', [join(dir, 'redis.conf')], { stdio: ['ignore', 'pipe', 'pipe'] });
  const said: Buffer[] = [];
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (text) => said.push(text));
  const ended = once(server, 'exit');
  const until = Date.now() + START_MS;
  while (!(await accepts(port))) {
    if (server.exitCode !== null || Date.now() > until)
      throw new Error(`redis-server did not start: ${Buffer.concat(said)}`);
    await sleep(20);
  }
  return {
    url: tls ? `rediss://localhost:${port}` : `redis://127.0.0.1:${port}`,
    port,
    async [Symbol.asyncDispose]() {
      server.kill('SIGKILL');
      await ended;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => socket.destroy()).once('connect', () => socket.end());
  });
