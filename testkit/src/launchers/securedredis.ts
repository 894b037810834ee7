/** A Redis as SECURITY.md recommends it: users from an ACL file, TLS on request, and no access without a password. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@swefarm/shared';
import type { Certificates } from './certificates.ts';
import { startRedisServer } from './redisserver.ts';

export interface SecuredRedis extends AsyncDisposable {
  /** `redis://127.0.0.1:PORT`, or with TLS `rediss://localhost:PORT`; without user and password. */
  readonly url: string;
  readonly port: number;
}

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
  const end = await startRedisServer(dir, 'redis', port, lines);
  return {
    url: tls ? `rediss://localhost:${port}` : `redis://127.0.0.1:${port}`,
    port,
    async [Symbol.asyncDispose]() {
      await end();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
