/**
 * Enforces limits for engines that accept limits without effect (Podman without root on control groups of version 1). The worker
 * measures the processes of each container once a second, as in the rootfs runtime.
 */

import { readdir, readFile } from 'node:fs/promises';
import { readNamespace } from '../namespaces/processes.ts';
import type { Watchdog } from '../namespaces/watchdog.ts';
import type { RuntimeCheck } from '../runtime.ts';
import type { DockerContainer } from './container.ts';

export type EngineLimits = RuntimeCheck['limits'];

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
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const names = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/comm`, 'latin1').catch(() => '')));
  return names.includes('podman\n');
}

/** Returns a function that ends the watch. Watches nothing if this process does not see the engine's processes. */
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
