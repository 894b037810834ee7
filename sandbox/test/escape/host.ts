/** The targets of the attempts: a service on every address of the host, an abstract socket, and a file, all of this test. */
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { newId } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';

export type Host = AsyncDisposable & {
  /** IPv4, without the loopback. */
  addresses: string[];
  port: number;
  abstract: string;
  folder: string;
  secretFile: string;
  secretName: string;
  secret: string;
  /** Returns whether the file is unchanged. */
  unharmed(): Promise<boolean>;
};

export async function openHost(): Promise<Host> {
  const folder = temporaryFolder('escape');
  const secretName = 'secret';
  const secretFile = join(folder, secretName);
  const secret = newId() + newId();
  await writeFile(secretFile, secret);
  const abstract = `swefarm-escape-${newId()}`;
  const servers = [createServer((socket) => socket.end()), createServer((socket) => socket.end())] as const;
  await once(servers[0].listen({ port: 0, host: '0.0.0.0' }), 'listening');
  await once(servers[1].listen({ path: `\0${abstract}` }), 'listening');
  return {
    addresses: Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => address),
    port: (servers[0].address() as AddressInfo).port,
    abstract,
    folder,
    secretFile,
    secretName,
    secret,
    unharmed: async () => (await readFile(secretFile, 'utf8')) === secret,
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.close();
    },
  };
}
