/** Work in hand, in folders named by their process: whoever comes later removes what dead ones left. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { newId, ownFolder } from '@swefarm/shared';
import { ownerAlive, processStarted } from '../identity.ts';

/** A name in such a folder that is this process's and nobody else's. */
export const partialName = (): string => `${process.pid}-${processStarted(process.pid)}-${newId()}`;

/** Names that are of another form are somebody else's and stay. */
export async function removeDeadPartials(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, pid, started] = /^(\d+)-(\d+)-/.exec(name) ?? [];
    if (pid && started && ownerAlive({ pid: Number(pid), pid_started: started })) continue;
    if (!pid && !name.startsWith('name-')) continue;
    await rm(join(folder, name), { recursive: true, force: true });
  }
}

/** A folder below `parent` for one piece of work; what dead processes left there goes first. */
export async function workFolder(parent: string): Promise<AsyncDisposable & { readonly path: string }> {
  await ownFolder(parent, { setting: 'images_dir' });
  await removeDeadPartials(parent);
  const path = join(parent, partialName());
  await mkdir(path, { mode: 0o700 });
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
