/** Starts a real registry (CNCF distribution) on the loopback, by testkit/clients/registry/up.sh. */
import { spawnSync } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '@swefarm/shared';
import { listen } from '../listen.ts';
import { run } from './run.ts';

const UP = new URL('../../clients/registry/up.sh', import.meta.url).pathname;

export type Distribution = AsyncDisposable & {
  /** `127.0.0.1:PORT` */
  readonly address: string;
};

export type DistributionOptions = {
  /** `user:password` of basic authentication. */
  login?: string;
  tls?: { cert: string; key: string };
  /** URL of a server of tokens, and the file with the certificate of their signer. */
  token?: { realm: string; roots: string };
};

/** Returns why no registry can be started here; null when it can. */
export const noDistribution = (): string | null =>
  spawnSync('docker-registry', ['--version']).status === 0
    ? null
    : 'there is no registry: bash testkit/setup/setup.sh registry';

export async function startDistribution(options: DistributionOptions = {}): Promise<Distribution> {
  const { login, tls, token } = options;
  const folder = join(tmpdir(), `swefarm-registry-${newId()}`);
  const env = {
    ...process.env,
    PORT: String(await freePort()),
    ...(login === undefined ? {} : { LOGIN: login }),
    ...(tls ? { TLS_CERT: tls.cert, TLS_KEY: tls.key } : {}),
    ...(token ? { TOKEN_REALM: token.realm, TOKEN_ROOTS: token.roots } : {}),
  };
  const { stdout } = await run('bash', [UP, folder], { env });
  const pid = Number(await readFile(join(folder, 'pid'), 'utf8'));
  return {
    address: stdout.trim(),
    async [Symbol.asyncDispose]() {
      process.kill(pid, 'SIGKILL');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
