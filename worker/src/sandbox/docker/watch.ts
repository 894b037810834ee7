/**
 * Limits for engines that accept them but do not enforce them (Podman without root on control groups of version 1): the worker
 * measures the processes of each container once a second, as for the rootfs runtime.
 */

import { readNamespace } from '../namespaces/processes.ts';
import type { Watchdog } from '../namespaces/watchdog.ts';
import type { RuntimeCheck } from '../runtime.ts';
import type { DockerContainer } from './container.ts';

/** Which limits the engine itself enforces. */
export type EngineLimits = RuntimeCheck['limits'];

/** Returns a function that ends the watch. Watches nothing where the engine's processes cannot be seen from here. */
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
  if (init === null || namespace === null) return () => undefined;
  container.watch();
  return watchdog.watch({
    namespace,
    init,
    ...wanted,
    diskBytes: null,
    folder: '/',
    onMemoryKill: () => container.countMemoryKill(),
    // Signals without the engine, which would have to start a process for it.
    killAll: async () => void process.kill(init, 'SIGUSR1'),
    end: () => container.endByLimit(),
  });
}
