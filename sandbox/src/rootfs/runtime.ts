/**
 * The rootfs runtime: an unpacked image below an overlay, in namespaces that bubblewrap makes. The runtime needs no daemon, and no root
 * if user namespaces are allowed. images.ts describes names of images, docs/rootfs.md the isolation.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { errorMessage } from '@swefarm/shared';
import type { ImageSettings } from '../engine/settings.ts';
import { EMPTY_CONFIG } from '../images/config.ts';
import { evictUnpacked } from '../images/evict.ts';
import { createFetch } from '../images/fetch.ts';
import { openPulledImages } from '../images/pulledimages.ts';
import { type ImageStore, openImageStore } from '../images/store.ts';
import { INTERNAL_SPEC } from '../internal.ts';
import { isInUserNamespace, makeBase } from '../namespaces/host.ts';
import { requireMountableFolder } from '../namespaces/mounts.ts';
import { imagesInUse, type RuntimeSetup, runtimeParts, setUpRuntime } from '../namespaces/setup.ts';
import { checkRuntime, type Trial } from '../namespaces/trial.ts';
import type { Runtime, RuntimeCheck, RuntimeLog } from '../runtime.ts';
import type { Host } from './arguments.ts';
import { ImageExporter } from './export.ts';
import { refreshIndex, repositoryOf } from './gitindex.ts';
import { hostTree } from './hosttree.ts';
import { type RootImage, RootImages } from './images.ts';
import { startRootfs } from './start.ts';

export type RootfsRuntimeOptions = {
  /** Folder of unpacked images, which the workers of this user on this node share. */
  imagesDir: string;
  /** Folder of running sandboxes. Its file system must support the upper layer of an overlay (not another overlay, not NFS). */
  scratchDir: string;
  /** Socket of the engine from which images are exported; null or absent: none. */
  dockerSocket?: string | null;
  /** How the engine pulls images, and when images are evicted; default: two pulls at once, no mirrors, no evictions. */
  images?: ImageSettings;
  /** False: the watchdog enforces the limits even if control groups could be created. Default true. */
  cgroups?: boolean;
  log?: RuntimeLog;
};

/** Throws UsageError for folders that cannot be used; `check` reports whether sandboxes start. */
export async function rootfsRuntime(options: RootfsRuntimeOptions): Promise<Runtime> {
  requireMountableFolder(options.imagesDir);
  const { scratchDir, log } = options;
  return setUpRuntime({ kind: 'rootfs', scratchDir, cgroups: options.cgroups !== false, log }, (setup) =>
    openRootfs(setup, options),
  );
}

async function openRootfs(setup: RuntimeSetup, options: RootfsRuntimeOptions): Promise<Runtime> {
  const { paths } = setup.programs;
  const host: Host = {
    root: setup.root,
    userNamespace: await isInUserNamespace(),
    bwrap: paths.bwrap ?? '/usr/bin/bwrap',
    bash: paths.bash ?? '/bin/bash',
    base: await makeBase(setup.folder),
  };
  const store = await openImageStore(options.imagesDir);
  const engine = engineOf(options);
  const images = new RootImages({ store, engine, prepare: (image) => refreshIndexOf(setup, host, image) });
  const settings = options.images;
  return {
    ...runtimeParts(setup),
    name: 'rootfs',
    placesByImage: true,
    check: (signal) => checkRootfs(setup, host, store, signal),
    ensureImage: (name, signal) => images.ensure(name, signal),
    images: store.usage,
    ...(settings
      ? {
          evictImages: async () =>
            (await evictUnpacked(store, imagesInUse(setup), settings)) +
            ((await engine?.evict(settings)) ?? 0),
        }
      : {}),
    start: async (spec, signal) => startRootfs(setup, host, spec, images.layers(spec.image), signal),
  };
}

function engineOf({ dockerSocket, images }: RootfsRuntimeOptions): ImageExporter | null {
  if (!dockerSocket) return null;
  return new ImageExporter({
    socketPath: dockerSocket,
    fetch: createFetch(images ?? { atOnce: 2, mirrors: [] }),
    pulled: images ? openPulledImages(images.pulledFile) : null,
  });
}

/** Refreshes the git index of a new image. A failure is logged, because it only makes containers of the image slower. */
async function refreshIndexOf(setup: RuntimeSetup, host: Host, image: RootImage): Promise<void> {
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
    setup.log?.warn({ tree, error: errorMessage(error) }, 'the git index of an image was not refreshed');
  }
}

function checkRootfs(
  setup: RuntimeSetup,
  host: Host,
  store: ImageStore,
  signal: AbortSignal,
): Promise<RuntimeCheck> {
  const trial: Trial = {
    problems: setup.programs.problems,
    version: () => bubblewrapVersion(host.bwrap),
    start: async () => {
      const below = await hostTree(store, signal);
      const folders = below.folders.map((at) => ({ at, lowers: [`/${at}`] }));
      const image = { config: EMPTY_CONFIG, lowers: [below.tree], folders };
      return await startRootfs(setup, host, INTERNAL_SPEC, image, signal);
    },
    argv: ['/bin/sh', '-c', 'echo works >/tmp/x && cat /tmp/x'],
    explain: (message) => explain(message, setup.scratchDir),
  };
  return checkRuntime(setup, trial, signal);
}

const NEVER_ABORTED = new AbortController().signal;

async function bubblewrapVersion(path: string): Promise<string> {
  const { stdout } = await promisify(execFile)(path, ['--version']);
  return stdout.trim();
}

function explain(message: string, scratchDir: string): string | null {
  if (!/unknown filesystem type|wrong fs type|overlay/i.test(message)) return null;
  return `overlay mounts do not work in ${scratchDir} (${message}): modprobe overlay, kernel 5.11 or later without root, and put scratch_dir on ext4, xfs or tmpfs rather than on an overlay or a network file system`;
}
