/** Containers of Docker, or of Podman behind its Docker-compatible socket. */
import { access, constants } from 'node:fs/promises';
import { errorMessage } from '@swefarm/shared';
import Docker from 'dockerode';
import { untilAborted } from '../abort.ts';
import { createGate } from '../gate.ts';
import { FARM_LABEL, readOwner } from '../labels.ts';
import type { Container, ContainerSpec, OwnedContainer, Runtime, RuntimeCheck } from '../runtime.ts';
import { DockerContainer } from './container.ts';
import { createOptions } from './create.ts';
import { engineFailure, statusCode } from './errors.ts';
import { imageSource } from './images.ts';

export type DockerRuntimeOptions = {
  /** The engine's socket, e.g. /var/run/docker.sock. */
  socketPath: string;
  log?: { warn(fields: Record<string, unknown>, message: string): void };
};

/** Creates, starts and removals in flight: an engine saturates far below what a worker could ask of it. */
const ENGINE_SLOTS = 8;
const START_TIMEOUT_MS = 120_000;
const REMOVE_ATTEMPTS = 5;
const CHECK_TIMEOUT_MS = 10_000;

/** @throws never: whether the engine is usable is said by `check`, and by the first call that needs it. */
export async function dockerRuntime(options: DockerRuntimeOptions): Promise<Runtime> {
  const docker = new Docker({ socketPath: options.socketPath });
  const gate = createGate(ENGINE_SLOTS);
  const quota = diskQuota(docker);

  /** Retries, because a removal may meet a start still under way; what is left is the reaper's. */
  const remove = async (id: string): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      try {
        await gate(() => docker.getContainer(id).remove({ force: true, v: true }));
        return;
      } catch (error) {
        if (statusCode(error) === 404) return;
        if (attempt === REMOVE_ATTEMPTS) throw engineFailure(error, 'engine_unreachable', `removing ${id}`);
        await new Promise((resolve) => setTimeout(resolve, 200 * attempt));
      }
    }
  };
  const removeQuietly = (id: string): Promise<void> =>
    remove(id).catch((error: unknown) => {
      options.log?.warn({ container: id, error: errorMessage(error) }, 'container left for the reaper');
    });

  return {
    name: 'docker',
    check: (signal) => checkEngine(docker, options.socketPath, signal),
    ensureImage: imageSource(docker),
    start: async (asked, signal) => {
      const spec: ContainerSpec =
        asked.limits.diskBytes !== null && !(await quota())
          ? { ...asked, limits: { ...asked.limits, diskBytes: null } }
          : asked;
      return gate(() => startContainer(docker, spec, signal, removeQuietly));
    },
    listOwned: () => listOwned(docker),
    images: async () => {
      const all = await docker.listImages();
      return { count: all.length, bytes: all.reduce((sum, { Size }) => sum + Size, 0) };
    },
    remove,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function startContainer(
  docker: Docker,
  spec: ContainerSpec,
  signal: AbortSignal,
  remove: (id: string) => Promise<void>,
): Promise<Container> {
  signal.throwIfAborted();
  const limit = AbortSignal.any([signal, AbortSignal.timeout(START_TIMEOUT_MS)]);
  let id: string | null = null;
  try {
    // Not aborted in the middle: the engine would go on and leave a container whose id nobody knows.
    const created = await docker.createContainer(createOptions(spec));
    id = created.id;
    limit.throwIfAborted();
    await created.start({ abortSignal: limit });
    return new DockerContainer(id, spec, { docker, remove });
  } catch (error) {
    // Not awaited inside the gate's slot: the removal needs a slot itself.
    if (id) void remove(id);
    signal.throwIfAborted();
    const doing = `starting a container of ${spec.image.name}`;
    throw engineFailure(error, statusCode(error) === 404 && !id ? 'image_not_found' : 'sandbox_start', doing);
  }
}

/** All that carries the farm label, running or not. Throws RolloutFailure engine_unreachable. */
async function listOwned(docker: Docker): Promise<OwnedContainer[]> {
  try {
    const found = await docker.listContainers({ all: true, filters: { label: [FARM_LABEL] } });
    return found.flatMap((container) => {
      const owner = readOwner(container.Labels);
      return owner ? [{ id: container.Id, owner, startedAt: container.Created * 1000 }] : [];
    });
  } catch (error) {
    throw engineFailure(error, 'engine_unreachable', 'listing containers');
  }
}

type EngineInfo = { Driver?: string; DriverStatus?: [string, string][]; CgroupDriver?: string } & Partial<
  Record<'MemoryLimit' | 'SwapLimit' | 'CpuCfsQuota' | 'PidsLimit', boolean>
>;

/** overlay2 limits disk only on xfs mounted with project quotas; elsewhere asking for it makes every create fail. */
function diskQuota(docker: Docker): () => Promise<boolean> {
  let known: Promise<boolean> | null = null;
  return () => {
    known ??= docker.info().then(
      (info: EngineInfo) => hasDiskQuota(info),
      () => {
        known = null;
        return false;
      },
    );
    return known;
  };
}

function hasDiskQuota(info: EngineInfo): boolean {
  if (['btrfs', 'zfs', 'devicemapper'].includes(info.Driver ?? '')) return true;
  const status = new Map(info.DriverStatus ?? []);
  return (
    info.Driver === 'overlay2' &&
    status.get('Backing Filesystem') === 'xfs' &&
    status.get('Supports project quota') === 'true'
  );
}

async function checkEngine(docker: Docker, socketPath: string, signal: AbortSignal): Promise<RuntimeCheck> {
  const unusable = (problem: string): RuntimeCheck => ({
    usable: false,
    version: null,
    limits: { cpu: 'none', memory: 'none', pids: 'none', disk: 'none' },
    problems: [problem],
  });
  try {
    await access(socketPath, constants.R_OK | constants.W_OK);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    return unusable(
      code === 'EACCES' || code === 'EPERM'
        ? `no permission for ${socketPath}: add this user to the group that owns it (often "docker"), or run as root`
        : `no engine socket at ${socketPath}: start Docker or Podman, or name the socket, or use --runtime rootfs`,
    );
  }
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(CHECK_TIMEOUT_MS)]);
    const [version, info] = await untilAborted(
      Promise.all([docker.version(), docker.info() as Promise<EngineInfo>]),
      limit,
    );
    const limits = {
      cpu: info.CpuCfsQuota ? 'enforced' : 'none',
      memory: info.MemoryLimit ? 'enforced' : 'none',
      pids: info.PidsLimit ? 'enforced' : 'none',
      disk: hasDiskQuota(info) ? 'enforced' : 'none',
    } as const;
    const missing = (['cpu', 'memory', 'pids'] as const).filter((name) => limits[name] === 'none');
    return {
      usable: true,
      version: `${version.Platform?.Name || 'Docker'} ${version.Version}`.trim(),
      limits,
      problems: missing.map(
        (name) => `the engine cannot limit ${name}: enable its cgroup controller on this node`,
      ),
    };
  } catch (error) {
    return unusable(`the engine at ${socketPath} does not answer (${errorMessage(error)}): is it running?`);
  }
}
