/** Temporary files and folders, named after the process that made them, so that a later process can remove those of dead ones. */
import { mkdir, readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { isProcessAlive, newId, ownFolder, ownStartMark } from '@swefarm/shared';

/** A name that no other process uses. */
export const temporaryName = (): string => `${process.pid}-${ownStartMark()}-${newId()}`;

const FRESH_EVERY_MS = 10 * 60_000;
/** Longer than any unpacking takes, and than a worker may be suspended. */
const STALE_MS = 2 * 3_600_000;

/**
 * Whether the process after which a folder is named is gone. A process of another process namespace (a container that shares the folder)
 * cannot be seen: it counts as gone when the folder was not touched for hours.
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

/** Touches a folder as long as its process lives, for processes that cannot see that process. */
export function keepFresh(path: string): Disposable {
  const touch = (): void => {
    const now = new Date();
    // The folder was removed: there is nothing to touch.
    utimes(path, now, now).catch(() => undefined);
  };
  const timer = setInterval(touch, FRESH_EVERY_MS);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Names of another form belong to others and stay. */
export async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, pid, started] = /^(\d+)-(\d+(?:@\d+)?)-/.exec(name) ?? [];
    if (pid && started && !(await isAbandoned(join(folder, name), pid, started))) continue;
    if (!pid && !name.startsWith('name-')) continue;
    await rm(join(folder, name), { recursive: true, force: true });
  }
}

/** A folder below `parent` for one piece of work; first removes what dead processes left there. */
export async function openTemporaryFolder(
  parent: string,
): Promise<AsyncDisposable & { readonly path: string }> {
  await ownFolder(parent, { setting: 'images_dir' });
  await removeAbandoned(parent);
  const path = join(parent, temporaryName());
  await mkdir(path, { mode: 0o700 });
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
