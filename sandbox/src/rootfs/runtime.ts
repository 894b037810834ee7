/**
 * The rootfs runtime: an unpacked image below an overlay, in namespaces that bubblewrap makes. The runtime needs no daemon, and no root
 * if user namespaces are allowed. images.ts describes names of images, docs/rootfs.md the isolation.
 */
import { join } from 'node:path';
import { RolloutFailure } from '@swefarm/shared';
import type { ImageSettings } from '../engine/settings.ts';
import { EMPTY_CONFIG } from '../images/config.ts';
import { evictUnpacked } from '../images/evict.ts';
import { createFetch } from '../images/fetch.ts';
import { withTag } from '../images/names.ts';
import { openPulledImages } from '../images/pulledimages.ts';
import { INTERNAL_SPEC } from '../internal.ts';
import { isInUserNamespace } from '../namespaces/host.ts';
import { imagesInUse, openRuntime, type RuntimeSetup, type SetupOptions } from '../namespaces/setup.ts';
import { checkRuntime, type Trial } from '../namespaces/trial.ts';
import type { RegistrySettings } from '../registry/settings.ts';
import { RegistrySource } from '../registry/source.ts';
import { run } from '../run.ts';
import type { Runtime, RuntimeCheck } from '../runtime.ts';
import type { Host } from './arguments.ts';
import { ImageExporter } from './export.ts';
import { refreshIndex } from './gitindex.ts';
import { hostTree } from './hosttree.ts';
import { type RootImage, RootImages } from './images.ts';
import { inspectUnpacked } from './inspect.ts';
import { startRootfs } from './start.ts';

export type RootfsRuntimeOptions = SetupOptions & {
  /** Socket of the engine from which images are exported; null or absent: none. */
  dockerSocket?: string | null;
  /** How the engine pulls images, and when images are evicted; default: two pulls at once, no mirrors, no evictions. */
  images?: ImageSettings;
  /** How images are fetched without an engine; default: public authorities, and no folder for all nodes. */
  registry?: RegistrySettings;
};

const PUBLIC: RegistrySettings = { ca: null, plainHttp: [], blobsDir: null };

/** Throws UsageError for folders that cannot be used; `check` reports whether sandboxes start. */
export const rootfsRuntime = (options: RootfsRuntimeOptions): Promise<Runtime> =>
  openRuntime('rootfs', options, async (setup) => {
    const { store, programs } = setup;
    const host: Host = {
      ...setup,
      userNamespace: await isInUserNamespace(),
      bwrap: programs.paths.bwrap ?? '/usr/bin/bwrap',
    };
    const engine = engineOf(options);
    const registry = new RegistrySource({
      ...(options.registry ?? PUBLIC),
      fetch: createFetch(options.images),
      folder: join(store.root, 'blobs'),
    });
    setup.opened.use(registry);
    const prepare = (image: RootImage): Promise<void> => refreshIndex(setup, host, image);
    const images = new RootImages({ store, engine, registry, prepare });
    const settings = options.images;
    return {
      placesByImage: true,
      check: (signal) => checkRootfs(setup, host, signal),
      ensureImage: (name, signal) => images.ensure(name, signal),
      images: store.usage,
      inspection: inspectUnpacked(store, settings?.pins ?? []),
      build: async (build, signal) => {
        const digest = await store.digestOf(withTag(build.name));
        if (digest !== null && (await store.find(digest))) return;
        if (!engine)
          throw new RolloutFailure(
            'image_not_built',
            `cannot build ${build.name}: no engine is configured; set docker_socket`,
          );
        await engine.build(build, signal);
      },
      ...(settings
        ? {
            evictImages: async () =>
              (await evictUnpacked(store, imagesInUse(setup), settings)) +
              (await registry.evict(settings)) +
              ((await engine?.evict(settings)) ?? 0),
          }
        : {}),
      start: async (spec, signal) => startRootfs(setup, host, spec, images.layers(spec.image), signal),
    };
  });

function engineOf({ dockerSocket, images }: RootfsRuntimeOptions): ImageExporter | null {
  if (!dockerSocket) return null;
  return new ImageExporter({
    socketPath: dockerSocket,
    fetch: createFetch(images),
    pulled: images ? openPulledImages(images.pulledFile) : null,
    atOnce: images?.atOnce,
  });
}

function checkRootfs(setup: RuntimeSetup, host: Host, signal: AbortSignal): Promise<RuntimeCheck> {
  const trial: Trial = {
    problems: setup.programs.problems,
    version: async () => (await run(host.bwrap, ['--version'])).stdout.trim(),
    start: async () => {
      const below = await hostTree(setup.store, signal);
      const folders = below.folders.map((at) => ({ at, lowers: [`/${at}`] }));
      const image = { config: EMPTY_CONFIG, lowers: [below.tree], folders };
      return await startRootfs(setup, host, INTERNAL_SPEC, image, signal);
    },
    argv: ['/bin/sh', '-c', 'echo works >/tmp/x && cat /tmp/x'],
    explain: (message) => explain(message, setup.scratchDir),
  };
  return checkRuntime(setup, trial, signal);
}

function explain(message: string, scratchDir: string): string | null {
  if (!/unknown filesystem type|wrong fs type|overlay/i.test(message)) return null;
  return `overlay mounts do not work in ${scratchDir} (${message}): modprobe overlay, kernel 5.11 or later without root, and put scratch_dir on ext4, xfs or tmpfs rather than on an overlay or a network file system`;
}
