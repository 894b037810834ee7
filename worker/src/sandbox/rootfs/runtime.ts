/**
 * The light runtime: an unpacked image below an overlay, in namespaces of its own, with bubblewrap around it; no daemon, and
 * no root where user namespaces are allowed. Names of images: see images.ts. What is isolated how: docs/rootfs.md.
 */
import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { errorMessage, newId, UsageError } from '@swefarm/shared';
import { processStarted } from '../../identity.ts';
import { openImageStore } from '../../images/store.ts';
import type { Container, ContainerSpec, ReadyImage, Runtime } from '../runtime.ts';
import type { Host } from './arguments.ts';
import { openCgroups, removeGroups } from './cgroups.ts';
import { engineSource } from './engine.ts';
import {
  bubblewrapVersion,
  explain,
  findPrograms,
  inheritedFiles,
  limitsOf,
  makeBase,
  warnings,
} from './host.ts';
import { hostTree } from './hosttree.ts';
import { imageSource, type RootImage, requirePlain } from './images.ts';
import { openPipes } from './pipes.ts';
import { refreshIndex, repositoryOf } from './prepare.ts';
import { groupsOf, killById, readRecords, removeDeadRuntimes, removeFolder } from './records.ts';
import { seccompProgram } from './seccomp.ts';
import { type StartDeps, startSandbox } from './start.ts';
import { startWatchdog } from './watchdog.ts';

export type RootfsRuntimeOptions = {
  /** Unpacked images; kept, and shared by the workers of this user on this node. */
  imagesDir: string;
  /** Folders of running sandboxes; on a file system that can be the upper layer of an overlay (not another overlay, not NFS). */
  scratchDir: string;
  /** Where images are exported from; null or absent: no engine is asked. */
  dockerSocket?: string | null;
  /** False: limits are left to the watchdog even where control groups could be made. Default true. */
  cgroups?: boolean;
  log?: { warn(fields: Record<string, unknown>, message: string): void };
};

/** Throws UsageError for folders that cannot be used; whether sandboxes start is told by `check`. */
export async function rootfsRuntime(options: RootfsRuntimeOptions): Promise<Runtime> {
  const { imagesDir, scratchDir, log } = options;
  for (const path of [imagesDir, scratchDir]) requireUsable(path);
  await mkdir(scratchDir, { recursive: true });
  await removeDeadRuntimes(scratchDir);
  const own = join(scratchDir, `runtime-${process.pid}-${processStarted(process.pid)}-${newId()}`);
  await mkdir(own, { mode: 0o711 });
  const filter = join(own, 'filter.bpf');
  await writeFile(filter, seccompProgram());
  const programs = await findPrograms();
  const host: Host = {
    root: process.getuid?.() === 0,
    bwrap: programs.paths.bwrap ?? '/usr/bin/bwrap',
    bash: programs.paths.bash ?? '/bin/bash',
    base: await makeBase(own),
  };
  const store = await openImageStore(imagesDir);
  const prepare = async (image: RootImage): Promise<void> => {
    const tree = image.lowers[0] as string;
    const workdir = repositoryOf(tree, image.config.workdir);
    if (workdir === null) return;
    try {
      await using container = await startSandbox(deps, { ...OWN_USE, workdir }, image, NEVER_ABORTED);
      await refreshIndex(container, tree, NEVER_ABORTED);
    } catch (error) {
      log?.warn({ tree, error: errorMessage(error) }, 'the git index of an image was not refreshed');
    }
  };
  const engine = options.dockerSocket ? engineSource(options.dockerSocket) : null;
  const images = imageSource({ store, engine, prepare });
  const cgroups = options.cgroups === false ? null : await openCgroups();
  const pipes = await openPipes(join(own, 'pipes'));
  const watchdog = startWatchdog();
  const live = new Map<string, Container>();
  const shell = hostShell(host, await inheritedFiles());
  const deps: StartDeps = { scratchDir, host, filter, shell, cgroups, pipes, watchdog, live, log };

  const remove = async (id: string): Promise<void> => {
    const container = live.get(id);
    if (container) return container[Symbol.asyncDispose]();
    await killById(id);
    const groups = await groupsOf(scratchDir, id);
    await removeGroups(groups);
    // Of a process that is dead; empty when this was its last sandbox.
    for (const group of groups) await rmdir(dirname(group)).catch(() => undefined);
    await removeFolder(scratchDir, id);
  };

  const runtime: Runtime = {
    name: 'rootfs',
    check: async (signal) => {
      const limits = limitsOf(cgroups, host);
      const problems = [...programs.problems];
      let version: string | null = null;
      if (problems.length === 0) {
        version = await bubblewrapVersion(host.bwrap);
        const failed = await trial(signal);
        if (failed) problems.push(explain(failed, host.root, scratchDir));
      }
      const usable = problems.length === 0;
      if (usable) problems.push(...warnings(limits, host));
      return { usable, version, limits, problems };
    },
    ensureImage: images.ensure,
    images: store.usage,
    start: (spec, signal) => startSandbox(deps, spec, images.layers(spec.image), signal),
    listOwned: () => readRecords(scratchDir),
    remove,
    async [Symbol.asyncDispose]() {
      await Promise.all([...live.values()].map((container) => container[Symbol.asyncDispose]()));
      watchdog[Symbol.dispose]();
      await pipes[Symbol.asyncDispose]();
      await cgroups?.close();
      await rm(own, { recursive: true, force: true });
    },
  };

  /** A sandbox of the host's own system that runs one command; what went wrong, or null. */
  const trial = async (signal: AbortSignal): Promise<string | null> => {
    try {
      const below = await hostTree(store, signal);
      const folders = below.folders.map((at) => ({ at, lowers: [`/${at}`] }));
      const image: RootImage = { config: { env: {}, workdir: '', user: '' }, lowers: [below.tree], folders };
      await using container = await startSandbox(deps, OWN_USE, image, signal);
      const result = await container.exec(['/bin/sh', '-c', 'echo works >/tmp/x && cat /tmp/x'], {
        timeoutMs: 10_000,
        maxOutputBytes: 1_000,
        signal,
      });
      return result.exitCode === 0 ? null : result.output.toString().trim();
    } catch (error) {
      signal.throwIfAborted();
      return errorMessage(error);
    }
  };
  return runtime;
}

const NEVER_ABORTED = new AbortController().signal;
/** For sandboxes that no rollout asked for. */
const OWN_USE: ContainerSpec = {
  image: { name: 'own use', digest: '', ref: '' } satisfies ReadyImage,
  role: 'agent',
  owner: {
    farm: '',
    worker: 'runtime',
    pid: process.pid,
    pid_started: processStarted(process.pid) ?? '',
    rollout_id: '',
    attempt: 0,
  },
  network: 'none',
  limits: { cpus: 1, memoryBytes: 1024 * 1024 * 1024, pids: 64, diskBytes: null },
  workdir: '/',
  env: {},
};

function requireUsable(path: string): void {
  if (!isAbsolute(path)) throw new UsageError(`"${path}" must be an absolute path`);
  try {
    requirePlain(path);
  } catch (error) {
    throw new UsageError(errorMessage(error), { cause: error });
  }
}

/** The command line that runs one of our host scripts; closes first what this process inherited and must not hand on. */
function hostShell(host: Host, inherited: readonly number[]): (text: string) => string[] {
  const closing = inherited.map((fd) => `exec ${fd}>&-\n`).join('');
  // dash knows descriptors of one digit only.
  const shell = inherited.some((fd) => fd > 9) ? [host.bash, '--noprofile', '--norc'] : ['/bin/sh'];
  return (text) => [...shell, '-c', closing + text, 'swefarm'];
}
