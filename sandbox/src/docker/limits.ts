/** The limits that an engine enforces, and the watch of those that it does not. */
import { allPids, readNamespace, readProcessFile } from '../namespaces/processes.ts';
import type { Watchdog } from '../namespaces/watchdog.ts';
import type { RuntimeCheck } from '../runtime.ts';
import type { DockerContainer } from './container.ts';

export type EngineLimits = RuntimeCheck['limits'];

export type EngineInfo = {
  Driver?: string;
  DriverStatus?: [string, string][];
  CgroupVersion?: string;
  SecurityOptions?: string[];
  NCPU?: number;
  DockerRootDir?: string;
} & Partial<Record<'MemoryLimit' | 'SwapLimit' | 'CpuCfsQuota' | 'PidsLimit' | 'Rootless', boolean>>;

export const hasFilter = ({ SecurityOptions }: EngineInfo): boolean =>
  SecurityOptions?.some((one) => /seccomp/.test(one)) ?? true;
export const NO_FILTER =
  'the engine filters no system calls: commands can end their own sandbox, which then counts as lost (build the kernel and the engine with seccomp)';

/** Without root there are no limits on control groups of version 1, although the engine may report some. */
export function engineLimits(info: EngineInfo): EngineLimits {
  const rootless =
    info.Rootless === true || (info.SecurityOptions ?? []).some((one) => /name=rootless/.test(one));
  const powerless = rootless && info.CgroupVersion !== '2';
  const how = (isSupported: boolean | undefined, otherwise: 'none' | 'watched') =>
    isSupported && !powerless ? 'enforced' : otherwise;
  return {
    cpu: how(info.CpuCfsQuota, 'none'),
    memory: how(info.MemoryLimit, 'watched'),
    pids: how(info.PidsLimit, 'watched'),
    disk: hasDiskQuota(info) ? 'enforced' : 'none',
  };
}

/** overlay2 limits disk only on xfs with project quotas; elsewhere a disk limit makes every create fail. */
function hasDiskQuota(info: EngineInfo): boolean {
  if (['btrfs', 'zfs', 'devicemapper'].includes(info.Driver ?? '')) return true;
  const status = new Map(info.DriverStatus ?? []);
  return (
    info.Driver === 'overlay2' &&
    status.get('Backing Filesystem') === 'xfs' &&
    status.get('Supports project quota') === 'true'
  );
}

/**
 * Returns the effective limits. Nothing is watched if the engine's processes are invisible, for example if engine and worker run in
 * separate containers.
 */
export async function watchedLimits(limits: EngineLimits): Promise<EngineLimits> {
  if (![limits.memory, limits.pids].includes('watched') || (await seesPodman())) return limits;
  const unwatched = (how: EngineLimits['memory']) => (how === 'watched' ? 'none' : how);
  return { ...limits, memory: unwatched(limits.memory), pids: unwatched(limits.pids) };
}

/** Returns whether this process sees Podman's processes: a Podman that answers has a running process. */
async function seesPodman(): Promise<boolean> {
  const names = await Promise.all((await allPids()).map((pid) => readProcessFile(pid, 'comm')));
  return names.includes('podman\n');
}

/**
 * Enforces limits that the engine accepts without effect (Podman without root on control groups of version 1), as in the rootfs runtime.
 * Returns a function that ends the watch. Watches nothing if this process does not see the engine's processes.
 */
export async function watchContainer(
  watchdog: Watchdog,
  container: DockerContainer,
  limits: EngineLimits,
): Promise<() => void> {
  const { memoryBytes, pids } = container.spec.limits;
  const wanted = {
    memoryBytes: limits.memory === 'watched' ? memoryBytes : null,
    pids: limits.pids === 'watched' ? pids : null,
  };
  if (wanted.memoryBytes === null && wanted.pids === null) return () => undefined;
  const init = await container.idlePid();
  const namespace = init === null ? null : await readNamespace(init, 'pid');
  // An engine in another process namespace has its own pids, which denote other processes here.
  const isSeen = namespace !== null && namespace !== (await readNamespace(process.pid, 'pid'));
  if (init === null || !isSeen) return () => undefined;
  container.watch();
  return watchdog.watch({
    namespace,
    init,
    ...wanted,
    diskBytes: null,
    folder: '/',
    onMemoryKill: () => container.countMemoryKill(),
    // Sends the signal directly, because the engine would start a process to send it.
    killAll: async () => void process.kill(init, 'SIGUSR1'),
    end: () => container.endByLimit(),
  });
}
