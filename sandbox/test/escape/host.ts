/** The targets of the attempts: a service on every address of the host, an abstract socket, and a file, all of this test. */
import { once } from 'node:events';
import { chmod, cp, lstat, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
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
  /** A folder that is mounted into every sandbox at {@link MOUNTED_AT}. */
  mounted: string;
  /** Returns whether the file and the mounted folder are unchanged. */
  unharmed(): Promise<boolean>;
};

export const MOUNTED_AT = '/opt/swefarm/agents/escape';

export async function openHost(): Promise<Host> {
  const folder = temporaryFolder('escape');
  const secretName = 'secret';
  const secretFile = join(folder, secretName);
  const secret = newId() + newId();
  await writeFile(secretFile, secret);
  const mounted = join(folder, 'mounted');
  await mkdir(mounted);
  await chmod(folder, 0o755);
  await writeFile(join(mounted, 'file'), secretName);
  await cp('/usr/bin/touch', join(mounted, 'touch'));
  await chmod(join(mounted, 'touch'), 0o4755);
  const before = await stateOf(mounted);
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
    mounted,
    unharmed: async () =>
      (await readFile(secretFile, 'utf8')) === secret && (await stateOf(mounted)) === before,
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.close();
    },
  };
}

/** Returns names, attributes, change times and contents of a folder's files as text. */
async function stateOf(folder: string): Promise<string> {
  const names = ['.', ...(await readdir(folder))].sort();
  const states = names.map(async (name) => {
    const { mode, uid, gid, size, nlink, ctimeMs } = await lstat(join(folder, name));
    const content = name === '.' ? '' : await readFile(join(folder, name), 'base64');
    return JSON.stringify([name, mode, uid, gid, size, nlink, ctimeMs, content]);
  });
  return (await Promise.all(states)).join('\n');
}
