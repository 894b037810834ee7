/**
 * The light runtime: an unpacked image below an overlay, in namespaces of its own, with bubblewrap around it; no daemon, and
 * no root where user namespaces are allowed. Names of images: see images.ts. What is isolated how: docs/rootfs.md.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { errorMessage } from '@swefarm/shared';
import { createFetch } from '../../images/fetch.ts';
import { openPulledImages } from '../../images/pulledimages.ts';
import { makeRoom } from '../../images/room.ts';
import { openImageStore } from '../../images/store.ts';
import type { ImageSettings } from '../engine/settings.ts';
import { diskFree } from '../free.ts';
import { INTERNAL_SPEC } from '../internal.ts';
import { explainNamespaces, limitsOf, makeBase, warnings } from '../namespaces/host.ts';
import { requireMountableFolder } from '../namespaces/mounts.ts';
import { readRecords, removeNameless } from '../namespaces/records.ts';
import { imagesOf, type RuntimeSetup, type SetupLog, setUpRuntime } from '../namespaces/setup.ts';
import type { Runtime } from '../runtime.ts';
import type { Host } from './arguments.ts';
import { engineSource } from './engine.ts';
import { hostTree } from './hosttree.ts';
import { imageSource, type RootImage } from './images.ts';
import { refreshIndex, repositoryOf } from './prepare.ts';
import { startRootfs } from './start.ts';

export type RootfsRuntimeOptions = {
  /** Unpacked images; kept, and shared by the workers of this user on this node. */
  imagesDir: string;
  /** Folders of running sandboxes; on a file system that can be the upper layer of an overlay (not another overlay, not NFS). */
  scratchDir: string;
  /** Where images are exported from; null or absent: no engine is asked. */
  dockerSocket?: string | null;
  /** How images come to that engine, and when unpacked ones go; default: two at once, no mirrors, none is removed. */
  images?: ImageSettings;
  /** False: limits are left to the watchdog even where control groups could be made. Default true. */
  cgroups?: boolean;
  log?: SetupLog;
};

/** Throws UsageError for folders that cannot be used; whether sandboxes start is told by `check`. */
export async function rootfsRuntime(options: RootfsRuntimeOptions): Promise<Runtime> {
  requireMountableFolder(options.imagesDir);
  const { scratchDir, log } = options;
  return setUpRuntime({ scratchDir, cgroups: options.cgroups !== false, log }, (setup) =>
    openRootfs(setup, options),
  );
}

async function openRootfs(setup: RuntimeSetup, options: RootfsRuntimeOptions): Promise<Runtime> {
  const { imagesDir, scratchDir, log } = options;
  const { programs } = setup;
  const host: Host = {
    root: setup.root,
    bwrap: programs.paths.bwrap ?? '/usr/bin/bwrap',
    bash: programs.paths.bash ?? '/bin/bash',
    base: await makeBase(setup.folder),
  };
  const store = await openImageStore(imagesDir);
  const prepare = async (image: RootImage): Promise<void> => {
    const tree = image.lowers[0] as string;
    const workdir = repositoryOf(tree, image.config.workdir);
    if (workdir === null) return;
    try {
      await using container = await startRootfs(
        setup,
        host,
        { ...INTERNAL_SPEC, workdir },
        image,
        NEVER_ABORTED,
      );
      await refreshIndex(container, tree, NEVER_ABORTED);
    } catch (error) {
      log?.warn({ tree, error: errorMessage(error) }, 'the git index of an image was not refreshed');
    }
  };
  const { dockerSocket, images: settings } = options;
  const fetch = createFetch(settings ?? { atOnce: 2, mirrors: [] });
  const brought = settings ? openPulledImages(settings.broughtFile) : null;
  const engine = dockerSocket ? engineSource({ socketPath: dockerSocket, fetch, brought }) : null;
  const images = imageSource({ store, engine, prepare });

  const runtime: Runtime = {
    name: 'rootfs',
    isolates: true,
    placesByImage: true,
    check: async (signal) => {
      const limits = limitsOf(setup.cgroups, host.root);
      const problems = [...programs.problems];
      let version: string | null = null;
      if (problems.length === 0) {
        version = await bubblewrapVersion(host.bwrap);
        const failed = await trial(signal);
        if (failed) problems.push(explain(failed, host.root, scratchDir));
      }
      const usable = problems.length === 0;
      if (usable) problems.push(...warnings(limits, host.root));
      return { usable, version, limits, problems };
    },
    ensureImage: images.ensure,
    images: store.usage,
    ...(settings
      ? {
          evictImages: async () =>
            (await makeRoom({ store, ...settings, inUse: imagesOf(setup.containers) })) +
            ((await engine?.evict(settings)) ?? 0),
        }
      : {}),
    start: async (spec, signal) => startRootfs(setup, host, spec, images.layers(spec.image), signal),
    listOwned: () => readRecords(scratchDir, 'rootfs'),
    sweep: () => removeNameless(scratchDir, log),
    diskFree: () => diskFree(scratchDir),
    remove: setup.remove,
    [Symbol.asyncDispose]: () => setup[Symbol.asyncDispose](),
  };

  /** A sandbox of the host's own system that runs one command; what went wrong, or null. */
  const trial = async (signal: AbortSignal): Promise<string | null> => {
    try {
      const below = await hostTree(store, signal);
      const folders = below.folders.map((at) => ({ at, lowers: [`/${at}`] }));
      const image: RootImage = { config: { env: {}, workdir: '', user: '' }, lowers: [below.tree], folders };
      await using container = await startRootfs(setup, host, INTERNAL_SPEC, image, signal);
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

async function bubblewrapVersion(path: string): Promise<string> {
  const { stdout } = await promisify(execFile)(path, ['--version']);
  return stdout.trim();
}

/** What usually is behind a trial sandbox that did not start. */
function explain(message: string, root: boolean, scratchDir: string): string {
  const namespaces = explainNamespaces(message, root);
  if (namespaces) return namespaces;
  if (/unknown filesystem type|wrong fs type|overlay/i.test(message)) {
    return `overlay mounts do not work in ${scratchDir} (${message}): modprobe overlay, kernel 5.11 or later without root, and put scratch_dir on ext4, xfs or tmpfs rather than on an overlay or a network file system`;
  }
  return `a trial sandbox did not start: ${message}`;
}
