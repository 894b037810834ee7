/** Control groups of version 1 and 2: one group for each sandbox, if this process may create groups. The kernel enforces the limits. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { linearBackoff, newId, retry } from '@swefarm/shared';
import type { MemoryGroup } from '../memorygroup.ts';
import type { Limits } from '../runtime.ts';

export type Controller = 'cpu' | 'memory' | 'pids';
const CONTROLLERS: readonly Controller[] = ['cpu', 'memory', 'pids'];
const PERIOD_US = 100_000;
/** Maximum number of the farm's processes in a group: process 1, two processes that watch it, and the processes of a starting exec. */
export const OWN_PROCESSES = 8;
/** Additional processes for the farm's execs, so that an exec starts even if a command has reached the limit. */
export const HEADROOM = 16;
const SHELL = 'shell';
const OTHER = 'other';

export type Cgroup = {
  /** Files to which a process writes its id to join the group of the commands or of the farm. */
  joins: Record<'shell' | 'other', string[]>;
  /** Group folders that the sandbox mounts read-only, where programs look for their own limits. */
  views: { folder: string; at: string }[];
  memory: MemoryGroup | null;
};

type Hierarchy = { version: 1 | 2; folder: string; controllers: Controller[] };

/**
 * Opens the hierarchies below this process's own group, so that the limits of the worker's job also apply to the sandboxes. Returns
 * null if no group can be created. Only tests pass `root`, `self` and `parent`.
 * @param parent name of the parent group of all sandboxes. A pid is not unique: the workers of two pods that see one hierarchy, or a
 * restarted worker of a pod, may have the same pid.
 */
export async function openCgroups(
  root = '/sys/fs/cgroup',
  self = '/proc/self/cgroup',
  parent = `swefarm-${process.pid}-${newId()}`,
): Promise<Cgroups | null> {
  const own = parseSelf(await read(self));
  const isVersion2 = existsSync(join(root, 'cgroup.controllers'));
  // Each controller belongs to one hierarchy; on machines with both versions, to version 1.
  const hierarchies = [
    ...(await version1(root, own, parent)),
    ...(isVersion2 ? await version2(root, own, parent) : []),
  ];
  return hierarchies.length > 0 ? new Cgroups(hierarchies) : null;
}

export class Cgroups implements AsyncDisposable {
  readonly controllers: ReadonlySet<Controller>;
  readonly #hierarchies: readonly Hierarchy[];

  constructor(hierarchies: readonly Hierarchy[]) {
    this.#hierarchies = hierarchies;
    this.controllers = new Set(hierarchies.flatMap((one) => one.controllers));
  }

  /** Creates the groups of a sandbox. Throws the error of the system call that failed. */
  async create(id: string, limits: Limits): Promise<Cgroup> {
    await Promise.all(this.#hierarchies.map((one) => createGroup(one, id, limits)));
    const memory = this.#hierarchies.find(({ controllers }) => controllers.includes('memory'));
    return {
      joins: { shell: this.#joins(id, SHELL), other: this.#joins(id, OTHER) },
      views: this.#hierarchies.flatMap(({ version, folder, controllers }) =>
        version === 2
          ? [{ folder: join(folder, id), at: '/sys/fs/cgroup' }]
          : controllers.map((name) => ({
              folder: join(folder, id, name === 'pids' ? SHELL : ''),
              at: `/sys/fs/cgroup/${name}`,
            })),
      ),
      memory: memory ? { folder: join(memory.folder, id), version: memory.version } : null,
    };
  }

  /** Returns the files by which a process joins a group. On version 1, the sandbox's group itself contains the farm's processes. */
  #joins(id: string, part: string): string[] {
    return this.#hierarchies.map((one) =>
      join(one.folder, id, parts(one).includes(part) ? part : '', 'cgroup.procs'),
    );
  }

  /** Returns the folders that {@link create} makes, children first, for {@link removeGroups}. */
  folders(id: string): string[] {
    return this.#hierarchies.flatMap((one) => [...parts(one), ''].map((part) => join(one.folder, id, part)));
  }

  /** Removes the parent of the sandboxes' groups. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const { folder } of this.#hierarchies) await rmdir(folder).catch(ignore);
  }
}

/** The caller checks the result instead of the error. */
const ignore = (_error: unknown): void => undefined;
const read = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
const wordsIn = async (path: string): Promise<string[]> => (await read(path)).trim().split(/\s+/);

/** Names of the child groups of a sandbox's group. Version 2 allows processes only in groups without children. */
const parts = ({ version, controllers }: Hierarchy): string[] => {
  if (version === 2) return [SHELL, OTHER];
  return controllers.includes('pids') ? [SHELL] : [];
};

/** Returns this process's path in the hierarchy of each controller; the key for version 2 is ''. */
function parseSelf(text: string): Map<string, string> {
  const own = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (names === undefined || path === undefined) continue;
    for (const name of names.split(',')) own.set(name, path);
  }
  return own;
}

async function version1(root: string, own: Map<string, string>, parent: string): Promise<Hierarchy[]> {
  const found = new Map<string, Hierarchy>();
  for (const controller of CONTROLLERS) {
    const path = own.get(controller);
    if (path === undefined) continue;
    // Inside a container, the path may be the path on the host, while the root of the mount is the group of the container. Both are tried.
    for (const base of [join(root, controller, path), join(root, controller)]) {
      const folder = join(base, parent);
      if (!existsSync(join(base, 'cgroup.procs')) || !(await isWritable(folder))) continue;
      const same = found.get(folder);
      if (same) same.controllers.push(controller);
      else found.set(folder, { version: 1, folder, controllers: [controller] });
      break;
    }
  }
  return [...found.values()];
}

/**
 * Opens version 2, where a group that enables controllers for its children may contain no processes. If this process is alone in its
 * group, it moves into a child group. Otherwise the parent is created at the top, which requires root.
 */
async function version2(root: string, own: Map<string, string>, parent: string): Promise<Hierarchy[]> {
  const base = join(root, own.get('') ?? '/');
  for (const [at, leaf] of [
    [base, join(base, 'swefarm-worker')],
    [root, null],
  ] as const) {
    const folder = join(at, parent);
    if (
      !(await enableForChildren(at, leaf)) ||
      !(await isWritable(folder)) ||
      !(await enableForChildren(folder, null))
    )
      continue;
    const active = await wordsIn(join(folder, 'cgroup.subtree_control'));
    return [{ version: 2, folder, controllers: CONTROLLERS.filter((name) => active.includes(name)) }];
  }
  return [];
}

/** Enables controllers for the children of a group; returns whether the memory controller is enabled. */
async function enableForChildren(group: string, leaf: string | null): Promise<boolean> {
  const file = join(group, 'cgroup.subtree_control');
  const [offered, active] = [await wordsIn(join(group, 'cgroup.controllers')), await wordsIn(file)];
  const missing = CONTROLLERS.filter((name) => offered.includes(name) && !active.includes(name));
  const processes = await wordsIn(join(group, 'cgroup.procs'));
  if (missing.length > 0 && leaf !== null && processes.join() === String(process.pid)) {
    await mkdir(leaf, { recursive: true }).catch(ignore);
    await writeFile(join(leaf, 'cgroup.procs'), String(process.pid)).catch(ignore);
  }
  for (const name of missing) await writeFile(file, `+${name}`).catch(ignore);
  return (await wordsIn(file)).includes('memory');
}

async function isWritable(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { recursive: true });
    const probe = join(folder, `probe-${process.pid}`);
    await mkdir(probe);
    await rmdir(probe);
    return true;
  } catch {
    return false;
  }
}

async function createGroup(hierarchy: Hierarchy, id: string, limits: Limits): Promise<void> {
  const { version, folder, controllers } = hierarchy;
  const group = join(folder, id);
  await mkdir(group);
  for (const [name, value, optional] of settings(version, controllers, limits)) {
    const written = writeFile(join(group, name), value);
    await (optional ? written.catch(ignore) : written);
  }
  for (const part of parts(hierarchy)) await mkdir(join(group, part));
  if (!controllers.includes('pids')) return;
  if (version === 2) await writeFile(join(group, 'cgroup.subtree_control'), '+pids');
  await writeFile(join(group, SHELL, 'pids.max'), String(limits.pids + OWN_PROCESSES));
}

type Setting = [file: string, value: string, optional?: true];

function settings(version: 1 | 2, controllers: readonly Controller[], limits: Limits): Setting[] {
  const quota = String(Math.max(1000, Math.round(limits.cpus * PERIOD_US)));
  const memory = String(limits.memoryBytes);
  const pids = String(limits.pids + OWN_PROCESSES + HEADROOM);
  const all: Record<Controller, Setting[]> =
    version === 2
      ? {
          cpu: [['cpu.max', `${quota} ${PERIOD_US}`]],
          memory: [
            ['memory.max', memory],
            ['memory.swap.max', '0', true],
          ],
          pids: [['pids.max', pids]],
        }
      : {
          cpu: [
            ['cpu.cfs_period_us', String(PERIOD_US)],
            ['cpu.cfs_quota_us', quota],
          ],
          // The limit of memory alone is set first, because the limit of memory with swap cannot be lower.
          memory: [
            ['memory.limit_in_bytes', memory],
            ['memory.memsw.limit_in_bytes', memory, true],
          ],
          pids: [['pids.max', pids]],
        };
  return controllers.flatMap((name) => all[name]);
}

/**
 * Removes the groups of a dead sandbox, and ignores missing groups. Retries, because a dead process leaves its group after a moment.
 * Throws if a group still has processes.
 */
export async function removeGroups(folders: readonly string[]): Promise<void> {
  const isPassing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EBUSY';
  for (const folder of folders) {
    const remove = () =>
      rmdir(folder).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      });
    await retry(remove, { pauseMs: linearBackoff(5), tries: 40, isPassing });
  }
}
