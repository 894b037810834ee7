/**
 * Holds one sandbox, whatever made its tree: record, control group, keeper, container and watch, in this order; what was made is
 * removed when one step fails.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorMessage, ownFolder, RolloutFailure } from '@swefarm/shared';
import { requirePossible } from '../possible.ts';
import type { Account } from '../rootfs/images.ts';
import type { Container, ContainerSpec } from '../runtime.ts';
import { SCRATCH } from '../scratch.ts';
import type { Layer } from '../upper.ts';
import { type Cgroup, removeGroups } from './cgroups.ts';
import { HeldContainer } from './container.ts';
import { removeFolder, writeRecord } from './records.ts';
import type { RuntimeSetup } from './setup.ts';
import type { Supervisor } from './supervisor.ts';

const ENTER = readFileSync(new URL('./enter.sh', import.meta.url), 'utf8');

export type Plan = {
  account: Account;
  /** Made in the sandbox's own folder, parents first. */
  folders: readonly string[];
  /** Where the changes of its tree are; the root's first. */
  layers: readonly [Layer, ...Layer[]];
  /** What else has to be there before the first process. */
  lay(): Promise<void>;
  keep(cgroup: Cgroup | null): Promise<Supervisor>;
  /** Environment of the image, known at the latest when the keeper runs. */
  env(keeper: Supervisor): Promise<Record<string, string>>;
  /** bubblewrap's part of the command line that is the same for every process. */
  enter(cgroup: Cgroup | null): string[];
};

/** Throws RolloutFailure sandbox_start / sandbox_refused / node_disk / node_memory. */
export async function holdSandbox(
  ground: RuntimeSetup,
  id: string,
  spec: ContainerSpec,
  plan: Plan,
  signal: AbortSignal,
): Promise<Container> {
  requirePossible(spec.limits, null);
  const groups = ground.cgroups?.folders(id) ?? [];
  const discard = async (): Promise<void> => {
    ground.live.delete(id);
    await removeGroups(groups);
    await removeFolder(ground.scratchDir, id);
  };
  let keeper: Supervisor | null = null;
  let cgroup: Cgroup | null = null;
  try {
    cgroup = await lay(ground, id, spec, plan, groups);
    keeper = await plan.keep(cgroup);
    const env = { ...(await plan.env(keeper)), ...spec.env };
    const container = contain(ground, id, spec, plan, { env, cgroup, keeper, discard });
    if (!signal.aborted) return container;
    await container[Symbol.asyncDispose]();
  } catch (error) {
    await keeper?.end();
    const starved = ((await cgroup?.oomKills()) ?? 0) > 0;
    // What cannot be removed now has a record, and the reaper.
    await discard().catch(() => undefined);
    throw starved ? ownLimit(spec, error) : startFailure(error);
  }
  throw signal.reason;
}

/** All that has to be there before the first process. */
async function lay(
  { scratchDir, cgroups }: RuntimeSetup,
  id: string,
  spec: ContainerSpec,
  plan: Plan,
  groups: readonly string[],
): Promise<Cgroup | null> {
  const record = { owner: spec.owner, cgroups: groups };
  // Nobody else can move what is in it, from the writing of the mount table to the mounts and after.
  const folders = ownFolder(scratchDir, SCRATCH)
    .then(() => writeRecord(join(scratchDir, id), record, plan.folders))
    .then(() => plan.lay());
  // Both to their end: what is still being made cannot be removed.
  const [made, cgroup] = await Promise.allSettled([folders, cgroups?.create(id, spec.limits) ?? null]);
  if (made.status === 'rejected') throw made.reason;
  if (cgroup.status === 'rejected') throw cgroup.reason;
  return cgroup.value;
}

function contain(
  ground: RuntimeSetup,
  id: string,
  spec: ContainerSpec,
  plan: Plan,
  made: {
    env: Record<string, string>;
    cgroup: Cgroup | null;
    keeper: Supervisor;
    discard(): Promise<void>;
  },
): Container {
  const { root, cgroups } = ground;
  const { cgroup, keeper, env, discard } = made;
  let unwatch = (): void => undefined;
  const container = new HeldContainer(id, spec, {
    keeper,
    pipes: ground.pipes,
    cgroup,
    account: plan.account,
    layers: plan.layers,
    env,
    script: ground.shell(ENTER),
    filter: ground.filter,
    enter: plan.enter(cgroup),
    nproc: root || cgroups?.controllers.has('pids') ? null : spec.limits.pids,
    remove: async () => {
      unwatch();
      await discard().catch((error: unknown) => {
        ground.log?.warn({ container: id, error: errorMessage(error) }, 'folder left for the reaper');
      });
    },
  });
  ground.live.set(id, container);
  unwatch = ground.watchdog.watch({
    namespace: keeper.namespace,
    init: keeper.init,
    folder: join(ground.scratchDir, id),
    memoryBytes: cgroups?.controllers.has('memory') ? null : spec.limits.memoryBytes,
    pids: cgroups?.controllers.has('pids') || !root ? null : spec.limits.pids,
    diskBytes: spec.limits.diskBytes,
    onMemoryKill: () => container.countMemoryKill(),
    killAll: () => container.killProcesses(),
    end: () => container.endByLimit(),
  });
  return container;
}

const ownLimit = ({ limits }: ContainerSpec, cause: unknown): RolloutFailure =>
  new RolloutFailure(
    'sandbox_refused',
    `a sandbox does not start within ${limits.memoryBytes} bytes of memory`,
    {
      cause,
    },
  );

function startFailure(error: unknown): RolloutFailure {
  if (error instanceof RolloutFailure) return error;
  const { code } = error as NodeJS.ErrnoException;
  const full = code === 'ENOSPC' || code === 'EDQUOT';
  const starved = code === 'ENOMEM' || code === 'EAGAIN';
  // A limit that the kernel does not take.
  const refused = code === 'EINVAL' || code === 'ERANGE';
  const failureClass = full
    ? 'node_disk'
    : starved
      ? 'node_memory'
      : refused
        ? 'sandbox_refused'
        : 'sandbox_start';
  const message = `starting a sandbox: ${errorMessage(error)}`.slice(0, 400);
  return new RolloutFailure(failureClass, message, { cause: error });
}
