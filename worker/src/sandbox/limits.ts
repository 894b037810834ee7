/** Limits that no sandbox can have are refused before anything is fetched or made: they are the run's fault, not the node's. */
import { RolloutFailure } from '@swefarm/shared';
import type { Limits } from './runtime.ts';

/** The kernel's least quota is 1 ms of 100. */
const LEAST_CPUS = 0.01;
const MOST_CPUS = 8_192;
/** Engines take no less: a shell alone needs it. */
const LEAST_MEMORY = 6 * 1024 ** 2;
/** No process has a number above it (PID_MAX_LIMIT). */
const MOST_PIDS = 4 * 1024 ** 2;

/** @param most CPUs that the node gives; null: as many as are asked for. Throws RolloutFailure sandbox_refused. */
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
