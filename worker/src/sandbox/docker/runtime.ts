/** Containers of Docker, or of Podman behind its Docker-compatible socket. */
import { access, constants } from 'node:fs/promises';
import { createLazy, createSemaphore, errorMessage, untilAborted } from '@swefarm/shared';
import Docker from 'dockerode';
import { createFetch } from '../../images/fetch.ts';
import { openPulledImages } from '../../images/pulledimages.ts';
import { createFailure, engineFailure } from '../engine/errors.ts';
import { evict } from '../engine/evict.ts';
import { imageSource } from '../engine/images.ts';
import { inspectImages } from '../engine/inspect.ts';
import type { Engine, ImageSettings } from '../engine/settings.ts';
import { diskFree } from '../free.ts';
import { FARM_LABEL, readOwner } from '../labels.ts';
import { startWatchdog } from '../namespaces/watchdog.ts';
import { requirePossible } from '../possible.ts';
import type { ContainerSpec, OwnedContainer, Runtime, RuntimeCheck } from '../runtime.ts';
import { DockerContainer } from './container.ts';
import { createOptions } from './create.ts';
import { inTime } from './deadline.ts';
import { type EngineInfo, engineLimits } from './limits.ts';
import { createRemoval } from './removal.ts';
import { profileFile } from './seccomp.ts';
import { type EngineLimits, watchContainer } from './watch.ts';

export type DockerRuntimeOptions = {
  /** Who answers at the socket; default docker. */
  engine?: Engine;
  /** The engine's socket, e.g. /var/run/docker.sock. */
  socketPath: string;
  /** How images come and go; default: two at once, no mirrors, none is removed. */
  images?: ImageSettings;
  /** Least milliseconds between two creates; default 0. */
  gapMs?: number;
  /** The longest that a removal is waited for; default two minutes. */
  answerMs?: number;
  log?: { warn(fields: Record<string, unknown>, message: string): void };
};

/** Creates, starts and removals in flight: an engine saturates far below what a worker could ask of it. */
const ENGINE_SLOTS = 8;
const START_TIMEOUT_MS = 120_000;
const CHECK_TIMEOUT_MS = 10_000;

/** @throws never: whether the engine is usable is said by `check`, and by the first call that needs it. */
export async function dockerRuntime(options: DockerRuntimeOptions): Promise<Runtime> {
  const engine = options.engine ?? 'docker';
  const docker = new Docker({ socketPath: options.socketPath });
  const creates = createSemaphore(ENGINE_SLOTS, options.gapMs ?? 0);
  const infoHere = askedOnce(docker);
  const { images } = options;
  const fetch = createFetch(images ?? { atOnce: 2, mirrors: [] });
  const brought = images ? openPulledImages(images.broughtFile) : null;
  const watchdog = startWatchdog();
  let rootDir: string | null = null;
  const profile = engine === 'podman' ? await profileFile() : null;

  /** What is left is the reaper's. */
  const remove = createRemoval(docker, createSemaphore(ENGINE_SLOTS), options.answerMs);
  const removeQuietly = (id: string): Promise<void> =>
    remove(id).catch((error: unknown) => {
      options.log?.warn({ container: id, error: errorMessage(error) }, 'container left for the reaper');
    });

  return {
    name: engine,
    isolates: true,
    placesByImage: true,
    check: (signal) => checkEngine(docker, engine, options.socketPath, signal),
    ensureImage: imageSource({ docker, fetch, brought }),
    ...(images && brought
      ? {
          evictImages: () => evict({ docker, brought, ...images }),
          inspection: inspectImages(docker, brought, images.pins),
        }
      : {}),
    start: async (asked, signal) => {
      const limits = (await infoHere())?.limits;
      requirePossible(asked.limits, null);
      const spec: ContainerSpec =
        asked.limits.diskBytes !== null && limits?.disk !== 'enforced'
          ? { ...asked, limits: { ...asked.limits, diskBytes: null } }
          : asked;
      let unwatch = (): void => undefined;
      const container = await creates.run(() =>
        startContainer({ docker, engine, profile: profile?.path ?? null }, spec, signal, async (id) => {
          unwatch();
          await removeQuietly(id);
        }),
      );
      if (limits) unwatch = await watchContainer(watchdog, container, limits);
      return container;
    },
    // Podman gives more than there is, as the kernel does; Docker refuses it.
    most: async () => {
      const cpus = engine === 'docker' ? (await infoHere())?.cpus : undefined;
      return cpus ? { cpus } : null;
    },
    listOwned: () => listOwned(docker),
    images: async () => {
      const all = await docker.listImages();
      return { count: all.length, bytes: all.reduce((sum, { Size }) => sum + Size, 0) };
    },
    diskFree: async () => {
      rootDir ??= ((await inTime(docker.info())) as { DockerRootDir?: string }).DockerRootDir ?? null;
      return rootDir === null ? null : diskFree(rootDir);
    },
    remove,
    async [Symbol.asyncDispose]() {
      watchdog[Symbol.dispose]();
      await profile?.[Symbol.asyncDispose]();
    },
  };
}

async function startContainer(
  { docker, engine, profile }: { docker: Docker; engine: Engine; profile: string | null },
  spec: ContainerSpec,
  signal: AbortSignal,
  remove: (id: string) => Promise<void>,
): Promise<DockerContainer> {
  signal.throwIfAborted();
  const limit = AbortSignal.any([signal, AbortSignal.timeout(START_TIMEOUT_MS)]);
  let id: string | null = null;
  try {
    // Not aborted in the middle: the engine would go on and leave a container whose id nobody knows.
    const created = await docker.createContainer(createOptions(spec, profile));
    id = created.id;
    limit.throwIfAborted();
    await created.start({ abortSignal: limit });
    return new DockerContainer(id, spec, { docker, engine, remove });
  } catch (error) {
    // Not awaited inside the slot: the removal needs a slot itself.
    if (id) void remove(id);
    signal.throwIfAborted();
    throw createFailure(error, id !== null, `starting a container of ${spec.image.name}`);
  }
}

/** All that carries the farm label, running or not. Throws RolloutFailure engine_unreachable. */
async function listOwned(docker: Docker): Promise<OwnedContainer[]> {
  try {
    const found = await inTime(docker.listContainers({ all: true, filters: { label: [FARM_LABEL] } }));
    return found.flatMap((container) => {
      const owner = readOwner(container.Labels);
      return owner ? [{ id: container.Id, owner }] : [];
    });
  } catch (error) {
    throw engineFailure(error, 'engine_unreachable', 'listing containers');
  }
}

/** What the engine has and limits, asked until it has answered once; null while it does not. */
function askedOnce(docker: Docker): () => Promise<{ limits: EngineLimits; cpus: number | undefined } | null> {
  const answer = createLazy(async () => {
    const info: EngineInfo = await inTime(docker.info());
    return { limits: engineLimits(info), cpus: info.NCPU };
  });
  return () => answer.get().catch(() => null);
}

async function checkEngine(
  docker: Docker,
  engine: Engine,
  socketPath: string,
  signal: AbortSignal,
): Promise<RuntimeCheck> {
  const unusable = (problem: string, away?: RuntimeCheck['away']): RuntimeCheck => ({
    ...(away ? { away } : {}),
    usable: false,
    version: null,
    limits: { cpu: 'none', memory: 'none', pids: 'none', disk: 'none' },
    problems: [problem],
  });
  try {
    await access(socketPath, constants.R_OK | constants.W_OK);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const barred = code === 'EACCES' || code === 'EPERM';
    return unusable(
      barred
        ? `no permission for ${socketPath}: add this user to the group that owns it (often "docker"), or run as root`
        : engine === 'podman'
          ? `no Podman socket at ${socketPath}: start one with \`podman system service --time=0 unix://${socketPath}\`, or name it with podman_socket`
          : `no engine socket at ${socketPath}: start Docker or Podman, or name the socket, or use --runtime rootfs`,
      barred ? undefined : 'no_socket',
    );
  }
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(CHECK_TIMEOUT_MS)]);
    const [version, info] = await untilAborted(
      Promise.all([docker.version(), docker.info() as Promise<EngineInfo>]),
      limit,
    );
    const limits = engineLimits(info);
    return {
      usable: true,
      version:
        `${engine === 'podman' ? 'Podman' : version.Platform?.Name || 'Docker'} ${version.Version}`.trim(),
      limits,
      problems: weaknesses(limits),
    };
  } catch (error) {
    return unusable(
      `the engine at ${socketPath} does not answer (${errorMessage(error)}): is it running?`,
      'no_answer',
    );
  }
}

/** What the engine does not hold, and what to do about it. */
function weaknesses(limits: EngineLimits): string[] {
  const by = (how: 'none' | 'watched') =>
    (['cpu', 'memory', 'pids'] as const).filter((name) => limits[name] === how);
  const [none, watched] = [by('none'), by('watched')];
  return [
    ...none.map((name) => `the engine cannot limit ${name}: enable its cgroup controller on this node`),
    ...(watched.length > 0
      ? [
          `the engine takes limits of ${watched.join(' and ')} and does not hold them (no root, control groups of version 1): the worker measures them once a second`,
        ]
      : []),
  ];
}
