/** Credentials of registries, from files as `docker login` and `kubectl create secret docker-registry` write them. */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { errorMessage, UsageError } from '@swefarm/shared';
import { z } from 'zod';
import { fullName } from './names.ts';

/** As engines take them (`X-Registry-Auth`). */
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

/** Where Docker's own registry is in such files, and in names. */
const HUB = /^(index|registry-1)\.docker\.io$/;

/** Fails at the start of a worker for files that cannot be read. Throws UsageError with the file. */
export function checkRegistryAuth(files: readonly string[]): void {
  for (const file of files) entriesOf(file, () => readFileSync(file, 'utf8'));
}

/**
 * What the files know of the registry of an image; of several entries the one whose path fits longest. Null: nothing, which is how public
 * images are asked for. The files are read each time, for a secret changes while the worker runs. Throws UsageError with the file.
 */
export async function credentialsFor(image: string, files: readonly string[]): Promise<Credentials | null> {
  const name = fullName(image);
  let credentials: Credentials | null = null;
  let longest = 0;
  for (const file of files) {
    const text = await readFile(file, 'utf8').catch((error: Error) => error);
    for (const [server, entry] of entriesOf(file, () => textOf(text))) {
      const place = placeOf(server);
      if (!name.startsWith(`${place}/`) || place.length <= longest) continue;
      const found = readEntry(server, entry);
      if (found === null) continue;
      longest = place.length;
      credentials = found;
    }
  }
  return credentials;
}

function textOf(text: string | Error): string {
  if (text instanceof Error) throw text;
  return text;
}

function entriesOf(file: string, read: () => string): [server: string, entry: Entry][] {
  try {
    return Object.entries(File.parse(JSON.parse(read())).auths);
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : errorMessage(error);
    throw new UsageError(
      `registry_auth: ${file} is no file as docker login writes it, {"auths": {"REGISTRY": {"auth": …}}}: ${why}`,
    );
  }
}

/** `https://index.docker.io/v1/` is `docker.io`, as names have it. */
function placeOf(server: string): string {
  const [host = '', ...path] = server.replace(/^https?:\/\//, '').split('/');
  const below = path.filter((part, at) => part !== '' && !(at === 0 && /^v[12]$/.test(part)));
  return [host.replace(HUB, 'docker.io'), ...below].join('/');
}

/** Null for an entry without a secret, such as one whose password a program keeps. */
function readEntry(server: string, { auth, username, password, identitytoken }: Entry): Credentials | null {
  if (identitytoken) return { serveraddress: server, identitytoken };
  if (username && password) return { serveraddress: server, username, password };
  const [, user, secret] = /^([^:]*):(.*)$/s.exec(Buffer.from(auth ?? '', 'base64').toString()) ?? [];
  return user && secret ? { serveraddress: server, username: user, password: secret } : null;
}
