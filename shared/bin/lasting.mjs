/** Settings of Node at its start for long-running commands. They halve the memory of workers, gateways and exports. */
import { join } from 'node:path';

export const LASTING = {
  // The defaults use 64 MiB for new objects and let the heap, with unused buffers, grow several times before a collection
  // (`npm run bench -- --only memory`).
  flags: ['--max-semi-space-size=4', '--heap-growing-percent=60'],
  settings: {
    // Returns freed bodies of requests and answers to the system.
    MALLOC_ARENA_MAX: '2',
    MALLOC_MMAP_THRESHOLD_: '131072',
    MALLOC_TRIM_THRESHOLD_: '131072',
  },
};

/** Folder of Node's compile cache. */
export const COMPILED = join(import.meta.dirname, '../../node_modules/.cache/swefarm');
