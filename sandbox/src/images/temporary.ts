/** Temporary files and folders, named after their process, so that later processes can remove the files of dead processes. */
import { mkdir, readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { isProcessAlive, newId, ownFolder, ownStartMark } from '@swefarm/shared';

export const temporaryName = (): string => `${process.pid}-${ownStartMark()}-${newId()}`;

const FRESH_EVERY_MS = 10 * 60_000;
/** Age from which a folder of an invisible process counts as abandoned: longer than any unpacking, and than the suspension of a worker. */
const STALE_MS = 2 * 3_600_000;

/**
 * Returns whether the process of a folder has ended. A process in another namespace (a container that shares the folder) is not
 * visible, and counts as ended if the folder was not touched for hours.
 */
export async function isAbandoned(path: string, pid: string, started: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return isOwnerGone(pid, started, found?.mtimeMs ?? Date.now());
}

/** @param touchedAt milliseconds since the epoch */
export function isOwnerGone(pid: string, started: string, touchedAt: number): boolean {
  const alive = isProcessAlive({ pid: Number(pid), pid_started: started });
  return alive === null ? Date.now() - touchedAt > STALE_MS : !alive;
}

/** Touches a folder regularly, so that processes that cannot see this process do not remove the folder. */
export function touchRegularly(path: string): Disposable {
  const touch = (): void => {
    const now = new Date();
    // The folder may have been removed.
    utimes(path, now, now).catch(() => undefined);
  };
  return setInterval(touch, FRESH_EVERY_MS).unref();
}

/** Removes the entries of dead processes, and all entries `name-…`. Other entries remain. */
export async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, pid, started] = /^(\d+)-(\d+(?:@\d+)?)-/.exec(name) ?? [];
    if (pid && started && !(await isAbandoned(join(folder, name), pid, started))) continue;
    if (!pid && !name.startsWith('name-')) continue;
    await rm(join(folder, name), { recursive: true, force: true });
  }
}

/** Makes a folder below `parent`; first removes leftovers of dead processes there. */
export async function openTemporaryFolder(
  parent: string,
): Promise<AsyncDisposable & { readonly path: string }> {
  await ownFolder(parent, { setting: 'images_dir' });
  await removeAbandoned(parent);
  const path = join(parent, temporaryName());
  await mkdir(path, { mode: 0o700 });
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
