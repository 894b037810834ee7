/** Options of Node for long-running commands. They halve the memory of workers, gateways and exports. */
import { join } from 'node:path';

export const LASTING = {
  // By default, Node uses 64 MiB for new objects and lets the heap grow to several times its size before a garbage collection (`npm run
  // bench -- --only memory`).
  flags: ['--max-semi-space-size=4', '--heap-growing-percent=60'],
  settings: {
    // Makes malloc return the memory of freed request and response bodies to the system.
    MALLOC_ARENA_MAX: '2',
    MALLOC_MMAP_THRESHOLD_: '131072',
    MALLOC_TRIM_THRESHOLD_: '131072',
  },
};

/** Folder of Node's compile cache. */
export const COMPILED = join(import.meta.dirname, '../../node_modules/.cache/swefarm');
