/** The contents of a bundle: uniform permissions, no links out of it, and one digest that any machine computes alike. */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, lchown, lstat, readdir, readlink, realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { UsageError } from '@swefarm/shared';

/** File in the root of a bundle that describes it and is not part of its digest. */
export const MANIFEST = 'bundle.json';

type Entry = { path: string; type: 'folder' | 'file' | 'link'; executable: boolean; bytes: number };

/** Lists a folder in the order of code units of the paths. Throws UsageError for devices, sockets and pipes. */
async function entriesOf(root: string): Promise<Entry[]> {
  const names = await readdir(root, { recursive: true });
  const entries = names
    .filter((path) => path !== MANIFEST)
    .map(async (path): Promise<Entry> => {
      const found = await lstat(join(root, path));
      const type = found.isFile()
        ? 'file'
        : found.isDirectory()
          ? 'folder'
          : found.isSymbolicLink()
            ? 'link'
            : null;
      if (type === null)
        throw new UsageError(`${join(root, path)}: a bundle has files, folders and links only`);
      return { path, type, executable: (found.mode & 0o111) !== 0, bytes: type === 'file' ? found.size : 0 };
    });
  return (await Promise.all(entries)).sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * Makes all files readable and none writable by others, because a sandbox may run as another user.
 *
 * @param mount path of the folder inside the sandbox, which absolute links may name
 * @throws UsageError for a link that leaves the folder
 */
export async function makeReadable(root: string, mount: string): Promise<void> {
  const real = await realpath(root);
  await chmod(root, 0o755);
  for (const { path, type, executable } of await entriesOf(root)) {
    const full = join(root, path);
    if (type === 'link') await requireInside(real, path, await readlink(full), mount);
    else await chmod(full, type === 'folder' || executable ? 0o755 : 0o644);
    if (process.getuid?.() === 0) await lchown(full, 0, 0);
  }
}

async function requireInside(root: string, path: string, target: string, mount: string): Promise<void> {
  const inMount = target === mount || target.startsWith(`${mount}/`);
  const start = target.startsWith('/') ? null : join(root, path, '..', target);
  const resolved = inMount ? join(root, target.slice(mount.length)) : start;
  const inside = resolved !== null && (resolved === root || resolved.startsWith(root + sep));
  // The real path follows other links, which may leave the folder although the text of this link does not.
  const real = inside ? await realpath(resolved).catch(() => resolved) : null;
  if (real !== null && !relative(root, real).startsWith('..')) return;
  throw new UsageError(`${join(root, path)}: the link to ${target} leaves the bundle`);
}

/** Returns the sha256 over names, permissions and contents, and the bytes of all files. */
export async function digestOf(
  root: string,
  signal?: AbortSignal,
): Promise<{ digest: string; bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for (const { path, type, executable, bytes: size } of await entriesOf(root)) {
    signal?.throwIfAborted();
    const mode = type === 'file' && executable ? 'program' : type;
    const content = type === 'link' ? await readlink(join(root, path)) : '';
    hash.update(`${JSON.stringify([path, mode, size, content])}\n`);
    if (type === 'file') await addFile(hash, join(root, path));
    bytes += size;
  }
  return { digest: hash.digest('hex'), bytes };
}

async function addFile(hash: Hash, path: string): Promise<void> {
  await pipeline(
    createReadStream(path, { highWaterMark: 1024 ** 2 }),
    async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) hash.update(chunk);
    },
  );
}
