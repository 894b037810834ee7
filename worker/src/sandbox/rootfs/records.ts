/** What a sandbox leaves on the disk: its folder with a record of its owner, so that any process can find and remove it. */
import { execFile } from 'node:child_process';
import { lstat, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isOurs, newId } from '@swefarm/shared';
import { ownerAlive } from '../../identity.ts';
import type { OwnedContainer, Owner } from '../runtime.ts';
import { holdersOf, killQuietly } from './processes.ts';

const run = promisify(execFile);
/** Ids of sandboxes begin with the name of their runtime. */
export type Kind = 'rootfs' | 'apptainer';
const RECORD = 'owner.json';
const ID = /^(?:rootfs|apptainer)-[0-9a-z]+$/;

export const newSandboxId = (kind: Kind): string => `${kind}-${newId()}`;

/** A sandbox's folder appears with its record in it: one without is being removed, or was when its remover died. */
export async function writeRecord(
  folder: string,
  record: { owner: Owner; cgroups: readonly string[] },
  folders: readonly string[],
): Promise<void> {
  const { pid, pid_started } = record.owner;
  const making = join(dirname(folder), `making-${pid}-${pid_started}-${basename(folder)}`);
  try {
    await mkdir(making, { mode: 0o700 });
    await writeFile(join(making, RECORD), JSON.stringify({ ...record, started_at: Date.now() }));
    await rename(making, folder);
  } catch (error) {
    await rm(making, { recursive: true, force: true });
    throw error;
  }
  for (const path of folders) await mkdir(path, { mode: 0o755 });
}

/** What this user made: in a folder for everybody, anybody can make one of such a name. */
async function ownNames(scratchDir: string): Promise<string[]> {
  const names = await readdir(scratchDir);
  const found = await Promise.all(names.map((name) => lstat(join(scratchDir, name)).catch(() => null)));
  return names.filter((_, at) => {
    const one = found[at];
    return one?.isDirectory() && isOurs(one);
  });
}

export async function readRecords(scratchDir: string, kind: Kind): Promise<OwnedContainer[]> {
  const owned: OwnedContainer[] = [];
  const names = (await ownNames(scratchDir)).filter((name) => ID.test(name) && name.startsWith(`${kind}-`));
  for (const id of names) {
    const text = await readFile(join(scratchDir, id, RECORD), 'utf8').catch(() => null);
    // Being removed.
    if (!text) continue;
    const { owner, started_at } = JSON.parse(text) as { owner: Owner; started_at: number };
    owned.push({ id, owner, startedAt: started_at });
  }
  return owned;
}

/** The control groups that a sandbox was given; none when there is no record of it. */
export async function groupsOf(scratchDir: string, id: string): Promise<string[]> {
  if (!ID.test(id)) return [];
  const text = await readFile(join(scratchDir, id, RECORD), 'utf8').catch(() => null);
  return text ? (JSON.parse(text) as { cgroups: string[] }).cgroups : [];
}

/** Ends the sandbox of another, dead or living, process. */
export async function killById(id: string): Promise<void> {
  if (!ID.test(id)) return;
  for (let round = 0; round < 50; round++) {
    const holders = await holdersOf(id);
    if (holders.length === 0) return;
    for (const pid of holders) killQuietly(pid);
    await sleep(20);
  }
}

/** rm of its own: trees deeper than a path may be long, by any owner, are beyond what Node removes. */
export async function removeFolder(scratchDir: string, id: string): Promise<void> {
  if (!ID.test(id)) return;
  const folder = join(scratchDir, id);
  const remove = () => run('rm', ['-rf', '--one-file-system', '--', folder]);
  try {
    await remove();
  } catch (firstError) {
    if (process.getuid?.() === 0) throw firstError;
    // Overlays make, and the model's code may make, folders that even their owner cannot read.
    await run('chmod', ['-R', 'u+rwx', '--', folder]).catch(() => undefined);
    await remove();
  }
}

/**
 * Removes what dead processes left that no record names: their runtimes' own folders, sandboxes half made, and sandboxes half
 * removed. The last may also be in a living process's hands; removing the same folder twice harms neither.
 */
export async function removeNameless(scratchDir: string): Promise<void> {
  for (const name of await ownNames(scratchDir)) {
    const [, pid, started] = /^(?:runtime|making)-(\d+)-([\d@]+)-/.exec(name) ?? [];
    if (pid && started && ownerAlive({ pid: Number(pid), pid_started: started }) === false) {
      await rm(join(scratchDir, name), { recursive: true, force: true });
    }
    if (!ID.test(name)) continue;
    const record = await stat(join(scratchDir, name, RECORD)).catch(
      (error: NodeJS.ErrnoException) => error.code,
    );
    if (record !== 'ENOENT') continue;
    await killById(name);
    await removeFolder(scratchDir, name);
  }
}
