/**
 * Opens the node's resources for the rootfs and Apptainer runtimes (folder, control groups, pipes, starter, watchdog), and
 * removes their sandboxes.
 */
import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { newId, ownFolder, ownStartMark } from '@swefarm/shared';
import { diskFree } from '../disk.ts';
import { touchRegularly } from '../images/temporary.ts';
import type { Container, RuntimeLog } from '../runtime.ts';
import { SCRATCH } from '../scratch.ts';
import { type Cgroups, openCgroups, removeGroups } from './cgroups.ts';
import { findPrograms, inheritedFiles, type Programs } from './host.ts';
import { requireMountableFolder } from './mounts.ts';
import { openPipes } from './pipes.ts';
import {
  killById,
  type NamespaceRuntime,
  readGroups,
  readRecords,
  removeFolder,
  removeUnowned,
} from './records.ts';
import { seccompProgram } from './seccomp.ts';
import { hostShell, openStarter, type Starter } from './starter.ts';
import { startWatchdog, type Watchdog } from './watchdog.ts';

export type RuntimeSetup = AsyncDisposable & {
  readonly kind: NamespaceRuntime;
  readonly scratchDir: string;
  readonly folder: string;
  readonly root: boolean;
  readonly programs: Programs;
  readonly filter: string;
  /** The command line that runs a script of the farm on the host. */
  shell(text: string): string[];
  /** Null if no control groups can be created. */
  readonly cgroups: Cgroups | null;
  readonly starter: Starter;
  readonly watchdog: Watchdog;
  readonly containers: Map<string, Container>;
  readonly log?: RuntimeLog | undefined;
  remove(id: string): Promise<void>;
};

type SetupOptions = {
  kind: NamespaceRuntime;
  scratchDir: string;
  cgroups: boolean;
  log?: RuntimeLog | undefined;
};

/** Opens a runtime. Closes the setup if the runtime cannot be opened. Throws UsageError for an unusable folder. */
export async function setUpRuntime<T>(
  options: SetupOptions,
  open: (setup: RuntimeSetup) => Promise<T>,
): Promise<T> {
  const setup = await openSetup(options);
  try {
    return await open(setup);
  } catch (error) {
    await setup[Symbol.asyncDispose]();
    throw error;
  }
}

async function openSetup(options: SetupOptions): Promise<RuntimeSetup> {
  const { scratchDir, log } = options;
  requireMountableFolder(scratchDir);
  await ownFolder(scratchDir, SCRATCH);
  await removeUnowned(scratchDir, log);
  const folder = join(scratchDir, `runtime-${process.pid}-${ownStartMark()}-${newId()}`);
  await mkdir(folder, { mode: 0o711 });
  try {
    return await openSetupIn(folder, options);
  } catch (error) {
    // The setup can fail on a full disk, for example, and the next attempt may succeed.
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function openSetupIn(
  folder: string,
  { kind, scratchDir, cgroups: wanted, log }: SetupOptions,
): Promise<RuntimeSetup> {
  const filter = join(folder, 'filter.bpf');
  await writeFile(filter, seccompProgram());
  const programs = await findPrograms();
  const cgroups = wanted ? await openCgroups() : null;
  const pipes = await openPipes(join(folder, 'pipes'));
  const bash = programs.paths.bash ?? '/bin/bash';
  const inherited = await inheritedFiles();
  const starter = await openStarter(hostShell(bash, inherited), join(folder, 'starter'), pipes);
  const watchdog = startWatchdog();
  const containers = new Map<string, Container>();
  const fresh = touchRegularly(folder);
  return {
    kind,
    scratchDir,
    folder,
    root: process.getuid?.() === 0,
    programs,
    filter,
    // dash redirects only descriptors of one digit.
    shell: hostShell(inherited.some((fd) => fd > 9) ? bash : '/bin/sh', inherited),
    cgroups,
    starter,
    watchdog,
    containers,
    log,
    async remove(id) {
      const container = containers.get(id);
      if (container) return container[Symbol.asyncDispose]();
      await killById(id);
      const groups = await readGroups(scratchDir, id);
      await removeGroups(groups);
      // The parent group of a dead process is empty after the removal of its last sandbox.
      for (const group of groups) await rmdir(dirname(group)).catch(() => undefined);
      await removeFolder(scratchDir, id);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...containers.values()].map((container) => container[Symbol.asyncDispose]()));
      watchdog[Symbol.dispose]();
      await starter[Symbol.asyncDispose]();
      await pipes[Symbol.asyncDispose]();
      await cgroups?.close();
      fresh[Symbol.dispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export const imagesInUse = ({ containers }: RuntimeSetup): string[] =>
  [...containers.values()].map(({ spec }) => spec.image.digest);

/** The members that both runtimes have in common. */
export const runtimeParts = (setup: RuntimeSetup) => ({
  isolates: true,
  listOwned: () => readRecords(setup.scratchDir, setup.kind),
  sweep: () => removeUnowned(setup.scratchDir, setup.log),
  diskFree: () => diskFree(setup.scratchDir),
  remove: setup.remove,
  [Symbol.asyncDispose]: () => setup[Symbol.asyncDispose](),
});
