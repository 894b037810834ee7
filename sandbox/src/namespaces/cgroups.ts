/** Control groups of version 1 and 2: one group for each sandbox, if this process may create groups. The kernel enforces the limits. */

import { access, constants, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
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

export type Cgroups = {
  version: 1 | 2;
  controllers: ReadonlySet<Controller>;
  /** Creates the groups of a sandbox. Throws the error of the system call that failed. */
  create(id: string, limits: Limits): Promise<Cgroup>;
  /** Returns the folders that {@link create} makes, children first, for {@link removeGroups}. */
  folders(id: string): string[];
  /** Removes the parent of the sandboxes' groups, unless other runtimes use the parent. */
  close(): Promise<void>;
};

export type Cgroup = {
  /** Files to which a process writes its id to join the group of the commands or of the farm. */
  joins: Record<'shell' | 'other', string[]>;
  /** Group folders that the sandbox mounts read-only, where programs look for their own limits. */
  views: { folder: string; at: string }[];
  memory: MemoryGroup | null;
};

type Hierarchy = { folder: string; controllers: Controller[] };

/**
 * Opens the hierarchies below this process's own group, so that the limits of the worker's job also apply to the sandboxes. Returns
 * null if no group can be created. Only tests pass arguments.
 */
export async function openCgroups(
  root = '/sys/fs/cgroup',
  self = '/proc/self/cgroup',
): Promise<Cgroups | null> {
  const own = parseSelf(await readFile(self, 'utf8').catch(() => ''));
  const hierarchies = [...(await version1(root, own)), ...(await version2(root, own))];
  // Each controller belongs to one hierarchy; on machines with both versions, to version 1.
  const controllers = new Set(hierarchies.flatMap((one) => one.controllers));
  if (controllers.size === 0) return null;
  const version = (await exists(join(root, 'cgroup.controllers'))) ? 2 : 1;
  for (const { folder } of hierarchies) opened.set(folder, (opened.get(folder) ?? 0) + 1);
  return {
    version,
    controllers,
    create: (id, limits) => create(version, hierarchies, id, limits),
    folders: (id) =>
      hierarchies.flatMap((one) => [
        ...parts(version, one).map((part) => join(one.folder, id, part)),
        join(one.folder, id),
      ]),
    close: async () => {
      await Promise.all(hierarchies.map(({ folder }) => leave(folder)));
    },
  };
}

/** Number of this process's runtimes that use each parent folder. */
const opened = new Map<string, number>();

async function leave(folder: string): Promise<void> {
  const left = (opened.get(folder) ?? 1) - 1;
  if (left > 0) opened.set(folder, left);
  else {
    opened.delete(folder);
    await rmdir(folder).catch(ignore);
  }
}

/**
 * Name of the parent group of all sandboxes, unique for this process. A pid is not unique: the workers of two pods that see one
 * hierarchy, or a restarted worker of a pod, may have the same pid.
 */
export const PARENT = `swefarm-${process.pid}-${newId()}`;

/** Names of the child groups of a sandbox's group. Version 2 allows processes only in groups without children. */
const parts = (version: 1 | 2, { controllers }: Hierarchy): string[] => {
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

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

async function version1(root: string, own: Map<string, string>): Promise<Hierarchy[]> {
  const found = new Map<string, Hierarchy>();
  for (const controller of CONTROLLERS) {
    const path = own.get(controller);
    if (path === undefined) continue;
    // Inside a container, the path may be the path on the host, while the root of the mount is the group of the container. Both are tried.
    for (const base of [join(root, controller, path), join(root, controller)]) {
      const folder = join(base, PARENT);
      if (!(await exists(join(base, 'cgroup.procs'))) || !(await writable(folder))) continue;
      const same = found.get(folder);
      if (same) same.controllers.push(controller);
      else found.set(folder, { folder, controllers: [controller] });
      break;
    }
  }
  return [...found.values()];
}

/**
 * Opens version 2, where a group that enables controllers for its children may contain no processes. If this process is alone in its
 * group, it moves into a child group. Otherwise the parent is created at the top, which requires root.
 */
async function version2(root: string, own: Map<string, string>): Promise<Hierarchy[]> {
  if (!(await exists(join(root, 'cgroup.controllers')))) return [];
  const base = join(root, own.get('') ?? '/');
  for (const [at, leaf] of [
    [base, join(base, 'swefarm-worker')],
    [root, null],
  ] as const) {
    const folder = join(at, PARENT);
    if (
      !(await enableForChildren(at, leaf)) ||
      !(await writable(folder)) ||
      !(await enableForChildren(folder, null))
    )
      continue;
    const active = (await readFile(join(folder, 'cgroup.subtree_control'), 'utf8')).trim().split(/\s+/);
    const controllers = CONTROLLERS.filter((name) => active.includes(name));
    if (controllers.length > 0) return [{ folder, controllers }];
  }
  return [];
}

/** Enables controllers for the children of a group; returns whether the memory controller is enabled. */
async function enableForChildren(group: string, leaf: string | null): Promise<boolean> {
  const file = join(group, 'cgroup.subtree_control');
  const offered = (await readFile(join(group, 'cgroup.controllers'), 'utf8').catch(() => ''))
    .trim()
    .split(/\s+/);
  const active = async (): Promise<string[]> =>
    (await readFile(file, 'utf8').catch(() => '')).trim().split(/\s+/);
  const missing = async (): Promise<Controller[]> => {
    const now = await active();
    return CONTROLLERS.filter((name) => offered.includes(name) && !now.includes(name));
  };
  let wanted = await missing();
  if (wanted.length > 0 && leaf !== null) {
    const processes = (await readFile(join(group, 'cgroup.procs'), 'utf8').catch(() => '')).trim();
    if (processes === String(process.pid)) {
      await mkdir(leaf, { recursive: true }).catch(ignore);
      await writeFile(join(leaf, 'cgroup.procs'), String(process.pid)).catch(ignore);
    }
  }
  for (const name of wanted) await writeFile(file, `+${name}`).catch(ignore);
  wanted = await missing();
  return !wanted.includes('memory') && (await active()).includes('memory');
}

/** The caller checks the result instead of the error. */
const ignore = (_error: unknown): void => undefined;

async function writable(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK);
    const probe = join(folder, `probe-${process.pid}`);
    await mkdir(probe);
    await rmdir(probe);
    return true;
  } catch (error) {
    ignore(error);
    return false;
  }
}

async function create(version: 1 | 2, hierarchies: Hierarchy[], id: string, limits: Limits): Promise<Cgroup> {
  await Promise.all(
    hierarchies.map(async ({ folder, controllers }) => {
      const group = join(folder, id);
      await mkdir(group);
      for (const [name, value, optional] of settings(version, controllers, limits)) {
        const written = writeFile(join(group, name), value);
        await (optional ? written.catch(ignore) : written);
      }
      for (const part of parts(version, { folder, controllers })) await mkdir(join(group, part));
      if (!controllers.includes('pids')) return;
      if (version === 2) await writeFile(join(group, 'cgroup.subtree_control'), '+pids');
      await writeFile(join(group, SHELL, 'pids.max'), String(limits.pids + OWN_PROCESSES));
    }),
  );
  const memory = hierarchies.find(({ controllers }) => controllers.includes('memory'));
  return {
    joins: { shell: joins(version, hierarchies, id, SHELL), other: joins(version, hierarchies, id, OTHER) },
    views: hierarchies.flatMap(({ folder, controllers }) =>
      version === 2
        ? [{ folder: join(folder, id), at: '/sys/fs/cgroup' }]
        : controllers.map((name) => ({
            folder: join(folder, id, name === 'pids' ? SHELL : ''),
            at: `/sys/fs/cgroup/${name}`,
          })),
    ),
    memory: memory ? { folder: join(memory.folder, id), version } : null,
  };
}

/** Returns the files by which a process joins a group. On version 1, the sandbox's group itself contains the farm's processes. */
function joins(version: 1 | 2, hierarchies: readonly Hierarchy[], id: string, part: string): string[] {
  return hierarchies.map((one) =>
    join(one.folder, id, parts(version, one).includes(part) ? part : '', 'cgroup.procs'),
  );
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

/** Removes the groups of a dead sandbox, and ignores missing groups. Throws if a group still has processes. */
export async function removeGroups(folders: readonly string[]): Promise<void> {
  for (const folder of folders) await removeGroup(folder);
}

/** Removes a group, with retries: a dead process leaves its group after a moment. */
async function removeGroup(group: string): Promise<void> {
  const remove = async (): Promise<void> => {
    await rmdir(group).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  };
  const isPassing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EBUSY';
  await retry(remove, { pauseMs: linearBackoff(5), tries: 40, isPassing });
}
