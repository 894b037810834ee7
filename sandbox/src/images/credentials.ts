/** Reads credentials of registries from files of `docker login` and `kubectl create secret docker-registry`. */
import { readFileSync } from 'node:fs';
import { errorMessage, UsageError } from '@swefarm/shared';
import { z } from 'zod';
import { fullName } from './names.ts';

export type Credentials = { serveraddress: string } & (
  | { username: string; password: string }
  | { identitytoken: string }
);

const Entry = z.object({
  auth: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  identitytoken: z.string().optional(),
});
const File = z.object({ auths: z.record(z.string(), Entry).default({}) });
type Entry = z.infer<typeof Entry>;

const HUB = /^(index|registry-1)\.docker\.io(?=\/|$)/;

/** Checks the files at the start of a worker. Throws a UsageError that names the file. */
export function checkRegistryAuth(files: readonly string[]): void {
  for (const file of files) entriesOf(file);
}

/**
 * Returns the credentials whose path matches most of the image's name; null: none, for public images. Reads the files each time,
 * because a secret can change while the worker runs. Throws a UsageError that names the file.
 */
export function credentialsFor(image: string, files: readonly string[]): Credentials | null {
  const name = fullName(image).replace(HUB, 'docker.io');
  let credentials: Credentials | null = null;
  let longest = 0;
  for (const file of files) {
    for (const [server, entry] of entriesOf(file)) {
      const registry = registryOf(server);
      if (!name.startsWith(`${registry}/`) || registry.length <= longest) continue;
      const found = readEntry(server, entry);
      if (found === null) continue;
      longest = registry.length;
      credentials = found;
    }
  }
  return credentials;
}

function entriesOf(file: string): [server: string, entry: Entry][] {
  try {
    return Object.entries(File.parse(JSON.parse(readFileSync(file, 'utf8'))).auths);
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : errorMessage(error);
    throw new UsageError(
      `registry_auth: ${file} is no file of docker login, {"auths": {"REGISTRY": {"auth": …}}}: ${why}`,
    );
  }
}

/** `https://index.docker.io/v1/` becomes `docker.io`, as in names of images. */
function registryOf(server: string): string {
  const [host = '', ...path] = server.replace(/^https?:\/\//, '').split('/');
  const below = path.filter((part, at) => part !== '' && !(at === 0 && /^v[12]$/.test(part)));
  return [host.replace(HUB, 'docker.io'), ...below].join('/');
}

/** Returns null for an entry without a secret, such as an entry of a credential helper. */
function readEntry(server: string, { auth, username, password, identitytoken }: Entry): Credentials | null {
  if (identitytoken) return { serveraddress: server, identitytoken };
  if (username && password) return { serveraddress: server, username, password };
  const [, user, secret] = /^([^:]*):(.*)$/s.exec(Buffer.from(auth ?? '', 'base64').toString()) ?? [];
  return user && secret ? { serveraddress: server, username: user, password: secret } : null;
}
