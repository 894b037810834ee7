/** Refuses impossible limits before an image is fetched. Impossible limits are an error of the run, not of the node. */
import { RolloutFailure } from '@swefarm/shared';
import type { Limits } from './runtime.ts';

/** Minimum number of CPUs: the kernel's smallest quota is 1 ms in 100 ms. */
const LEAST_CPUS = 0.01;
const MOST_CPUS = 8_192;
const LEAST_MEMORY = 6 * 1024 ** 2;
/** The kernel's highest process id (PID_MAX_LIMIT). */
const MOST_PIDS = 4 * 1024 ** 2;

/** Throws RolloutFailure sandbox_refused for impossible limits. @param most maximum number of CPUs; null: any number */
export function requirePossible({ cpus, memoryBytes, pids }: Limits, most: { cpus: number } | null): void {
  if (!(cpus >= LEAST_CPUS && cpus <= MOST_CPUS))
    refuse(`sandbox.cpus is ${cpus}, and must be ${LEAST_CPUS} to ${MOST_CPUS}`);
  if (most !== null && cpus > most.cpus)
    refuse(`sandbox.cpus is ${cpus}, and the engine of this node gives at most ${most.cpus}`);
  if (!(memoryBytes >= LEAST_MEMORY))
    refuse(`sandbox.memory_bytes is ${memoryBytes}, and must be at least ${LEAST_MEMORY}`);
  if (!(pids >= 1 && pids <= MOST_PIDS)) refuse(`sandbox.pids is ${pids}, and must be 1 to ${MOST_PIDS}`);
}

function refuse(why: string): never {
  throw new RolloutFailure('sandbox_refused', why);
}
