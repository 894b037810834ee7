/**
 * Opens the node's resources for the rootfs and Apptainer runtimes (folders, control groups, pipes, starter, watchdog), and
 * removes their sandboxes.
 */
import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ownFolder } from '@swefarm/shared';
import { diskFree } from '../disk.ts';
import { openImageStore } from '../images/store.ts';
import { temporaryName, touchRegularly } from '../images/temporary.ts';
import { Broker } from '../listening/broker.ts';
import type { Container, Runtime, RuntimeLog } from '../runtime.ts';
import { SCRATCH } from '../scratch.ts';
import { openCgroups, removeGroups } from './cgroups.ts';
import { findPrograms, inheritedFiles, makeBase } from './host.ts';
import { requireMountableFolder } from './mounts.ts';
import { openPipes } from './pipes.ts';
import {
  killById,
  type RecordedRuntime,
  readGroups,
  readRecords,
  removeFolder,
  removeUnowned,
} from './records.ts';
import { seccompProgram } from './seccomp.ts';
import { hostShell, openStarter } from './starter.ts';
import { Watchdog } from './watchdog.ts';

export type SetupOptions = {
  /** Folder of running sandboxes. Its file system must support the upper layer of an overlay (not another overlay, not NFS). */
  scratchDir: string;
  /** Folder of unpacked images, which the workers of this user on this node share. */
  imagesDir: string;
  /** False: the watchdog enforces the limits even if control groups could be created. Default true. */
  cgroups?: boolean;
  log?: RuntimeLog;
};

export type RuntimeSetup = Awaited<ReturnType<typeof openSetup>>;

type Shared =
  | 'name'
  | 'isolates'
  | 'listOwned'
  | 'sweep'
  | 'diskFree'
  | 'remove'
  | typeof Symbol.asyncDispose;

/**
 * Opens a runtime with the members that both runtimes share. Closes the setup if the runtime cannot be opened. Throws UsageError for
 * unusable folders.
 */
export async function openRuntime(
  name: Exclude<RecordedRuntime, 'host'>,
  options: SetupOptions,
  open: (setup: RuntimeSetup) => Promise<Omit<Runtime, Shared>>,
): Promise<Runtime> {
  const { scratchDir, log } = options;
  // If the setup fails, for example on a full disk, the opened resources are released: the next attempt may succeed.
  await using opened = new AsyncDisposableStack();
  const setup = await openSetup(options, opened);
  const own = await open(setup);
  const owned = opened.move();
  return {
    ...own,
    name,
    isolates: true,
    listOwned: () => readRecords(scratchDir, name),
    sweep: () => removeUnowned(scratchDir, log),
    diskFree: () => diskFree(scratchDir),
    async remove(id) {
      const container = setup.containers.get(id);
      if (container) return container[Symbol.asyncDispose]();
      await killById(id);
      const groups = await readGroups(scratchDir, id);
      await removeGroups(groups);
      // The parent group of a dead process is empty after the removal of its last sandbox.
      for (const group of groups) await rmdir(dirname(group)).catch(() => undefined);
      await removeFolder(scratchDir, id);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function openSetup(
  { scratchDir, imagesDir, cgroups: wanted = true, log }: SetupOptions,
  opened: AsyncDisposableStack,
) {
  for (const folder of [imagesDir, scratchDir]) requireMountableFolder(folder);
  await ownFolder(scratchDir, SCRATCH);
  await removeUnowned(scratchDir, log);
  const folder = join(scratchDir, `runtime-${temporaryName()}`);
  await mkdir(folder, { mode: 0o711 });
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  opened.use(touchRegularly(folder));
  const filter = join(folder, 'filter.bpf');
  await writeFile(filter, seccompProgram());
  const programs = await findPrograms();
  const bash = programs.paths.bash ?? '/bin/bash';
  const cgroups = opened.use(wanted ? await openCgroups() : null);
  const pipes = opened.use(await openPipes(join(folder, 'pipes')));
  const inherited = await inheritedFiles();
  const starter = opened.use(await openStarter(hostShell(bash, inherited), join(folder, 'starter'), pipes));
  const watchdog = opened.use(new Watchdog());
  const broker = opened.use(new Broker());
  const containers = new Map<string, Container>();
  opened.defer(async () => {
    await Promise.all([...containers.values()].map((container) => container[Symbol.asyncDispose]()));
  });
  return {
    /** Resources that are released with the runtime. */
    opened,
    scratchDir,
    folder,
    root: process.getuid?.() === 0,
    programs,
    bash,
    filter,
    /** Overlay layers above every image, by kind of network. */
    base: await makeBase(folder),
    /** The command line that runs a script of the farm on the host. dash redirects only descriptors of one digit. */
    shell: hostShell(inherited.some((fd) => fd > 9) ? bash : '/bin/sh', inherited),
    /** Null if no control groups can be created. */
    cgroups,
    starter,
    watchdog,
    broker,
    containers,
    store: await openImageStore(imagesDir),
    log,
  };
}

export const imagesInUse = ({ containers }: RuntimeSetup): string[] =>
  [...containers.values()].map(({ spec }) => spec.image.digest);
