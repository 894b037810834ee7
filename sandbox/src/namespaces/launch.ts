/** Starts one sandbox: record, control group, supervisor, container, watchdog. When a step fails, the earlier steps are undone. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorMessage, type FailureClass, ownFolder, RolloutFailure } from '@swefarm/shared';
import { requirePossible } from '../limits.ts';
import { readKills } from '../memorygroup.ts';
import { requireMounts } from '../mounts.ts';
import type { Container, ContainerSpec } from '../runtime.ts';
import { SCRATCH } from '../scratch.ts';
import { type Cgroup, removeGroups } from './cgroups.ts';
import { NamespaceContainer, type SandboxPlan, type StartedSandbox } from './container.ts';
import { removeFolder, writeRecord } from './records.ts';
import type { RuntimeSetup } from './setup.ts';
import { type Supervisor, type SupervisorOptions, startSupervisor } from './supervisor.ts';

const script = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
const START = script('./start.sh');
export const INIT = script('./init.sh');
/** Score with which the out-of-memory killer chooses process 1 last. */
const INIT_OOM_SCORE = '-900';

export type LaunchPlan = SandboxPlan & {
  /** Folders to make in the sandbox's own folder, parents first. */
  folders: readonly string[];
  /** Mount table that is mounted in the sandbox's mount namespace before the first process starts. */
  mounts: string;
  /** Makes the other files that the first process needs. */
  prepare(): Promise<void>;
  /** The command line that starts process 1 in the mount namespace. */
  command(cgroup: Cgroup | null): string[];
  supervisor: Omit<SupervisorOptions, 'root'>;
  env(init: number): Promise<Record<string, string>>;
};

/** Returns the command that makes a mount namespace; without root also a user namespace in which this user is root. */
export const unshareMounts = (root: boolean): string[] =>
  root ? ['unshare', '--mount'] : ['unshare', '--user', '--map-root-user', '--mount'];

/** Starts a sandbox. Throws RolloutFailure sandbox_start / sandbox_refused / node_disk / node_memory. */
export async function launchSandbox(
  setup: RuntimeSetup,
  id: string,
  spec: ContainerSpec,
  plan: LaunchPlan,
  signal: AbortSignal,
): Promise<Container> {
  requirePossible(spec.limits, null);
  await requireMounts(spec);
  const groups = setup.cgroups?.folders(id) ?? [];
  const discard = async (): Promise<void> => {
    setup.containers.delete(id);
    await removeGroups(groups);
    await removeFolder(setup.scratchDir, id, setup.starter);
  };
  let supervisor: Supervisor | null = null;
  let cgroup: Cgroup | null = null;
  try {
    cgroup = await prepareSandbox(setup, id, spec, plan, groups);
    supervisor = await startSupervisor(setup.starter, supervisorCommand(setup, id, plan, cgroup), {
      ...plan.supervisor,
      root: setup.root,
    });
    const env = { ...(await plan.env(supervisor.init)), ...spec.env };
    const container = createContainer(setup, id, spec, plan, { cgroup, supervisor, env, remove: discard });
    if (!signal.aborted) return container;
    await container[Symbol.asyncDispose]();
  } catch (error) {
    await supervisor?.end();
    const isStarved = cgroup?.memory ? ((await readKills(cgroup.memory)) ?? 0) > 0 : false;
    // If the removal fails, the reaper finds the leftovers by the record of the sandbox.
    await discard().catch(() => undefined);
    if (!isStarved) throw startFailure(error);
    const message = `a sandbox does not start within ${spec.limits.memoryBytes} bytes of memory`;
    throw new RolloutFailure('sandbox_refused', message, { cause: error });
  }
  throw signal.reason;
}

const mountTableOf = (scratchDir: string, id: string): string => join(scratchDir, id, 'mounts');

async function prepareSandbox(
  { scratchDir, cgroups }: RuntimeSetup,
  id: string,
  spec: ContainerSpec,
  plan: LaunchPlan,
  groups: readonly string[],
): Promise<Cgroup | null> {
  const makeFolders = async (): Promise<void> => {
    // After this check, no other user can change the mount table before the mounts are made.
    await ownFolder(scratchDir, SCRATCH);
    await writeRecord(join(scratchDir, id), { owner: spec.owner, cgroups: groups }, plan.folders);
    await Promise.all([writeFile(mountTableOf(scratchDir, id), plan.mounts), plan.prepare()]);
  };
  // Waits for both results, because folders and groups that are still being made could not be removed.
  const [made, cgroup] = await Promise.allSettled([makeFolders(), cgroups?.create(id, spec.limits) ?? null]);
  if (made.status === 'rejected') throw made.reason;
  if (cgroup.status === 'rejected') throw cgroup.reason;
  return cgroup.value;
}

function supervisorCommand(
  { root, shell, scratchDir }: RuntimeSetup,
  id: string,
  plan: LaunchPlan,
  cgroup: Cgroup | null,
): string[] {
  return [
    ...unshareMounts(root),
    ...shell(START),
    cgroup?.joins.other.join(' ') ?? '',
    mountTableOf(scratchDir, id),
    root ? INIT_OOM_SCORE : '',
    plan.supervisor.id === null ? '' : 'stay',
    ...plan.command(cgroup),
  ];
}

function createContainer(
  setup: RuntimeSetup,
  id: string,
  spec: ContainerSpec,
  plan: LaunchPlan,
  { remove, ...made }: StartedSandbox,
): Container {
  const { root, cgroups } = setup;
  let unwatch = (): void => undefined;
  const container = new NamespaceContainer(id, spec, setup, plan, {
    ...made,
    remove: async () => {
      unwatch();
      await remove().catch((error: unknown) => {
        setup.log?.warn({ container: id, error: errorMessage(error) }, 'folder left for the reaper');
      });
    },
  });
  setup.containers.set(id, container);
  unwatch = setup.watchdog.watch({
    namespace: made.supervisor.namespace,
    init: made.supervisor.init,
    folder: join(setup.scratchDir, id),
    memoryBytes: cgroups?.controllers.has('memory') ? null : spec.limits.memoryBytes,
    pids: cgroups?.controllers.has('pids') || !root ? null : spec.limits.pids,
    diskBytes: spec.limits.diskBytes,
    onMemoryKill: () => container.countMemoryKill(),
    killAll: () => container.killProcesses(),
    end: () => container.endByLimit(),
  });
  return container;
}

/** Failure classes by error code of a system call. EINVAL and ERANGE come from a limit that the kernel refuses. */
const CLASSES: Record<string, FailureClass> = {
  ENOSPC: 'node_disk',
  EDQUOT: 'node_disk',
  ENOMEM: 'node_memory',
  EAGAIN: 'node_memory',
  EINVAL: 'sandbox_refused',
  ERANGE: 'sandbox_refused',
};

function startFailure(error: unknown): RolloutFailure {
  if (error instanceof RolloutFailure) return error;
  const failureClass = CLASSES[(error as NodeJS.ErrnoException).code ?? ''] ?? 'sandbox_start';
  const message = `starting a sandbox: ${errorMessage(error)}`.slice(0, 400);
  return new RolloutFailure(failureClass, message, { cause: error });
}
