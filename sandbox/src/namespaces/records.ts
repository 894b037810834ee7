/** A sandbox's folder and the record of its owner, by which any process can find and remove the sandbox. */
import { lstat, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isOurs, newId, poll } from '@swefarm/shared';
import { z } from 'zod';
import { readJsonFile } from '../images/jsonfile.ts';
import { isAbandoned } from '../images/temporary.ts';
import { run } from '../run.ts';
import type { OwnedContainer, Owner, RuntimeLog } from '../runtime.ts';
import { findOwners, killQuietly } from './processes.ts';
import type { Starter } from './starter.ts';

export type RecordedRuntime = 'rootfs' | 'apptainer' | 'host';
const RECORD = 'owner.json';
const SandboxRecord = z.object({
  owner: z.object({
    ...{ farm: z.string(), worker: z.string(), pid: z.number(), pid_started: z.string() },
    ...{ rollout_id: z.string(), attempt: z.number() },
  }),
  /** Host sandboxes of older workers have none. */
  cgroups: z.array(z.string()).default([]),
  started_at: z.number(),
});
/** Age from which an unreadable record counts as lost. A starting sandbox has a complete record from the beginning. */
const UNREADABLE_MS = 10 * 60_000;
const ID = /^(?:rootfs|apptainer|host)-[0-9a-z]+$/;

export const newSandboxId = (kind: RecordedRuntime): string => `${kind}-${newId()}`;

/** Creates the folder together with its record by one rename. So a folder without a record is being removed, or was partly removed. */
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

/** Returns null if there is no record, or if it is unreadable. */
const recordOf = (scratchDir: string, id: string): Promise<z.infer<typeof SandboxRecord> | null> =>
  readJsonFile(join(scratchDir, id, RECORD), SandboxRecord);

/** Lists only folders of this user, because other users can choose such names in a world-writable folder. */
async function ownNames(scratchDir: string): Promise<string[]> {
  const found = await Promise.all(
    (await readdir(scratchDir)).map(async (name) => {
      const one = await lstat(join(scratchDir, name)).catch(() => null);
      return one?.isDirectory() && isOurs(one) ? [name] : [];
    }),
  );
  return found.flat();
}

export async function readRecords(scratchDir: string, kind: RecordedRuntime): Promise<OwnedContainer[]> {
  const owned: OwnedContainer[] = [];
  for (const id of await ownNames(scratchDir)) {
    if (!ID.test(id) || !id.startsWith(`${kind}-`)) continue;
    // An unreadable record does not make the other sandboxes unknown.
    const record = await recordOf(scratchDir, id).catch(() => null);
    if (record) owned.push({ id, owner: record.owner });
  }
  return owned;
}

export async function readGroups(scratchDir: string, id: string): Promise<string[]> {
  return ID.test(id) ? ((await recordOf(scratchDir, id))?.cgroups ?? []) : [];
}

export async function killById(id: string): Promise<void> {
  if (!ID.test(id)) return;
  const killAll = async (): Promise<boolean> => {
    const owners = await findOwners(id);
    for (const pid of owners) killQuietly(pid);
    return owners.length === 0;
  };
  await poll(killAll, { pauseMs: 20, tries: 50 });
}

/**
 * Removes the folder of a sandbox with `rm`, because Node cannot remove trees whose paths exceed the maximum length. @param starter
 * starts `rm`; absent: Node starts it
 */
export async function removeFolder(scratchDir: string, id: string, starter?: Starter): Promise<void> {
  if (!ID.test(id)) return;
  const folder = join(scratchDir, id);
  const line = ['-rf', '--one-file-system', '--', folder];
  if (starter && (await removeBy(starter, ['rm', ...line], folder))) return;
  const remove = () => run('rm', line);
  try {
    await remove();
  } catch (firstError) {
    if (process.getuid?.() === 0) throw firstError;
    // Overlays and the model's code make folders that their owner cannot read.
    await run('chmod', ['-R', 'u+rwx', '--', folder]).catch(() => undefined);
    await remove();
  }
}

async function removeBy(starter: Starter, line: readonly string[], folder: string): Promise<boolean> {
  const started = await starter.start(line, null, false).catch(() => null);
  if (!started) return false;
  started.output.resume();
  await started.ended;
  return (await lstat(folder).catch(() => null)) === null;
}

/**
 * Removes leftovers of dead processes without a record: runtimes' own folders, incomplete and partly removed sandboxes. Also removes
 * sandboxes with an unreadable record older than ten minutes. Another process may safely remove the same sandbox at the same time.
 */
export async function removeUnowned(scratchDir: string, log?: RuntimeLog): Promise<void> {
  for (const name of await ownNames(scratchDir)) {
    const [, pid, started] = /^(?:runtime|making)-(\d+)-([\d@]+)-/.exec(name) ?? [];
    const path = join(scratchDir, name);
    if (pid && started && (await isAbandoned(path, pid, started))) {
      await rm(path, { recursive: true, force: true });
    }
    if (!ID.test(name) || (await recordOf(scratchDir, name))) continue;
    const unreadable = await lstat(join(path, RECORD)).catch(() => null);
    if (unreadable) {
      if (Date.now() - unreadable.mtimeMs < UNREADABLE_MS) continue;
      log?.warn({ folder: path }, 'removing a sandbox whose record of its owner cannot be read');
    }
    await killById(name);
    await removeFolder(scratchDir, name);
  }
}
