/** Runs containers in Docker, or in Podman through its Docker-compatible socket. */
import { access, constants } from 'node:fs/promises';
import { createLazy, createSemaphore, errorMessage, untilAborted } from '@swefarm/shared';
import type Docker from 'dockerode';
import { diskFree } from '../disk.ts';
import { createBuild } from '../engine/build.ts';
import { openEngine } from '../engine/client.ts';
import { createFailure, engineFailure } from '../engine/errors.ts';
import { evictPulled, inspectEngineImages } from '../engine/evict.ts';
import { createEnsureImage } from '../engine/images.ts';
import type { Engine, ImageSettings } from '../engine/settings.ts';
import { createFetch } from '../images/fetch.ts';
import { openPulledImages } from '../images/pulledimages.ts';
import { FARM_LABEL, readOwner } from '../labels.ts';
import { requirePossible } from '../limits.ts';
import { Broker } from '../listening/broker.ts';
import { requireMounts } from '../mounts.ts';
import { Watchdog } from '../namespaces/watchdog.ts';
import type {
  Container,
  ContainerSpec,
  OwnedContainer,
  Runtime,
  RuntimeCheck,
  RuntimeLog,
} from '../runtime.ts';
import { DockerContainer } from './container.ts';
import { createOptions } from './create.ts';
import { inTime } from './deadline.ts';
import { FirstProcess } from './firstprocess.ts';
import {
  type EngineInfo,
  type EngineLimits,
  engineLimits,
  hasFilter,
  NO_FILTER,
  watchContainer,
  watchedLimits,
} from './limits.ts';
import { createRemoval } from './removal.ts';
import { profileFile, seccompProfile } from './seccomp.ts';

export type DockerRuntimeOptions = {
  engine?: Engine;
  socketPath: string;
  /** Default: two pulls at once, no mirrors, no evictions. */
  images?: ImageSettings;
  /** Minimum time between two creates, in milliseconds; default 0. */
  gapMs?: number;
  /** Timeout of a removal, in milliseconds; default two minutes. */
  answerMs?: number;
  log?: RuntimeLog;
};

/** Maximum number of concurrent starts, and of concurrent removals. An engine saturates far below a worker's demand. */
const ENGINE_SLOTS = 8;
const START_TIMEOUT_MS = 120_000;
const CHECK_TIMEOUT_MS = 10_000;

type State = Awaited<ReturnType<typeof openState>>;

async function openState(options: DockerRuntimeOptions, opened: AsyncDisposableStack) {
  const engine = options.engine ?? 'docker';
  const docker = openEngine(options.socketPath);
  const file = engine === 'podman' ? opened.use(await profileFile()) : null;
  return {
    docker,
    engine,
    creates: createSemaphore(ENGINE_SLOTS, options.gapMs ?? 0),
    watchdog: opened.use(new Watchdog()),
    broker: opened.use(new Broker()),
    profile: file?.path ?? JSON.stringify(seccompProfile('docker')),
    remove: createRemoval(docker, createSemaphore(ENGINE_SLOTS), options.answerMs),
    info: createLazy(() => inTime(docker.info() as Promise<EngineInfo>)),
    log: options.log,
  };
}

/** Opens the runtime even if the engine is unusable; `check` and the first call to the engine report the problem. */
export async function dockerRuntime(options: DockerRuntimeOptions): Promise<Runtime> {
  const { socketPath, images } = options;
  await using opening = new AsyncDisposableStack();
  const state = await openState(options, opening);
  const { docker, engine } = state;
  const fetch = createFetch(images);
  const pulled = images ? openPulledImages(images.pulledFile) : null;
  const opened = opening.move();
  return {
    name: engine,
    isolates: true,
    placesByImage: true,
    check: (signal) => checkEngine(docker, engine, socketPath, signal),
    ensureImage: createEnsureImage({ docker, fetch, pulled }),
    build: createBuild(() => ({ docker, pulled }), images?.atOnce),
    ...(images && pulled
      ? {
          evictImages: () => evictPulled({ docker, pulled, ...images }),
          inspection: inspectEngineImages(docker, pulled, images.pins),
        }
      : {}),
    start: (spec, signal) => startWatched(state, spec, signal),
    // Podman accepts more CPUs than the node has, as the kernel does; Docker refuses them.
    most: async () => {
      const cpus = engine === 'docker' ? (await infoOf(state))?.NCPU : undefined;
      return cpus ? { cpus } : null;
    },
    listOwned: () => listOwned(docker),
    images: async () => {
      const all = await docker.listImages();
      return { count: all.length, bytes: all.reduce((sum, { Size }) => sum + Size, 0) };
    },
    diskFree: async () => {
      const { DockerRootDir } = await state.info.get();
      return DockerRootDir === undefined ? null : diskFree(DockerRootDir);
    },
    remove: state.remove,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Returns null while the engine does not answer. */
const infoOf = ({ info }: State): Promise<EngineInfo | null> => info.get().catch(() => null);

/** Starts a container, with a watchdog for the limits that the engine does not enforce. */
async function startWatched(state: State, requested: ContainerSpec, signal: AbortSignal): Promise<Container> {
  requirePossible(requested.limits, null);
  // Podman would make a missing folder.
  await requireMounts(requested, state.engine === 'podman');
  const info = await infoOf(state);
  const limits = info && engineLimits(info);
  const profile = info && !hasFilter(info) ? null : state.profile;
  const diskBytes = limits?.disk === 'enforced' ? requested.limits.diskBytes : null;
  const spec: ContainerSpec = { ...requested, limits: { ...requested.limits, diskBytes } };
  let unwatch = (): void => undefined;
  const remove = async (id: string): Promise<void> => {
    unwatch();
    await state.remove(id).catch((error: unknown) => {
      state.log?.warn({ container: id, error: errorMessage(error) }, 'container left for the reaper');
    });
  };
  const container = await state.creates.run(() => startContainer(state, spec, profile, signal, remove));
  if (limits) unwatch = await watchContainer(state.watchdog, container, limits);
  return container;
}

async function startContainer(
  { docker, engine, broker }: State,
  spec: ContainerSpec,
  profile: string | null,
  signal: AbortSignal,
  remove: (id: string) => Promise<void>,
): Promise<DockerContainer> {
  signal.throwIfAborted();
  const limit = AbortSignal.any([signal, AbortSignal.timeout(START_TIMEOUT_MS)]);
  // Podman loses the first bytes of an attached stream.
  const takesRequests = engine === 'docker';
  let id: string | null = null;
  let first: FirstProcess | null = null;
  try {
    // The create is not aborted: the engine would still create a container, whose id would be unknown.
    const created = await docker.createContainer(createOptions(spec, engine, profile, takesRequests));
    id = created.id;
    limit.throwIfAborted();
    if (takesRequests) first = await FirstProcess.attach(created);
    await created.start({ abortSignal: limit });
    return new DockerContainer(id, spec, { docker, engine, broker, first, remove });
  } catch (error) {
    first?.[Symbol.dispose]();
    // The removal is not awaited, because this start would occupy its slot during the removal.
    if (id) void remove(id);
    signal.throwIfAborted();
    throw createFailure(error, id !== null, `starting a container of ${spec.image.name}`);
  }
}

/** Lists all containers with the farm label, running or not. Throws RolloutFailure engine_unreachable. */
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
  if (/^\w+:\/\//.test(socketPath))
    return unusable(
      `${socketPath} is not a Unix socket: name one with ${engine}_socket (or ${engine === 'podman' ? 'CONTAINER' : 'DOCKER'}_HOST), or use --runtime rootfs`,
    );
  try {
    await access(socketPath, constants.R_OK | constants.W_OK);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const barred = code === 'EACCES' || code === 'EPERM';
    return unusable(
      barred
        ? `no permission for ${socketPath}: add this user to the group that owns it (often "docker"), or run as root`
        : engine === 'podman'
          ? `no Podman socket at ${socketPath}: start one (\`systemctl --user start podman.socket\`; without systemd \`podman system service --time=0 unix://${socketPath}\`), name it with podman_socket, or use --runtime rootfs`
          : `no engine socket at ${socketPath}: start Docker or Podman, name the socket with docker_socket or DOCKER_HOST, or use --runtime rootfs`,
      barred ? undefined : 'no_socket',
    );
  }
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(CHECK_TIMEOUT_MS)]);
    const [version, info] = await untilAborted(
      Promise.all([docker.version(), docker.info() as Promise<EngineInfo>]),
      limit,
    );
    const limits = await watchedLimits(engineLimits(info));
    return {
      usable: true,
      version:
        `${engine === 'podman' ? 'Podman' : version.Platform?.Name || 'Docker'} ${version.Version}`.trim(),
      limits,
      problems: [...weaknesses(limits), ...(hasFilter(info) ? [] : [NO_FILTER])],
    };
  } catch (error) {
    return unusable(
      `the engine at ${socketPath} does not answer (${errorMessage(error)}): is it running?`,
      'no_answer',
    );
  }
}

/** Names the limits that the engine does not enforce, with the remedy. */
function weaknesses(limits: EngineLimits): string[] {
  const by = (how: 'none' | 'watched') =>
    (['cpu', 'memory', 'pids'] as const).filter((name) => limits[name] === how);
  const [none, watched] = [by('none'), by('watched')];
  return [
    ...(none.length > 0
      ? [
          `the engine cannot limit ${none.join(', ')} of a sandbox: enable its cgroup controllers on this node; until then only the limits of the engine itself apply`,
        ]
      : []),
    ...(watched.length > 0
      ? [
          `the engine takes limits of ${watched.join(' and ')} and does not enforce them (no root, control groups of version 1): the worker measures them once a second`,
        ]
      : []),
  ];
}
