/**
 * How Node is started for what runs for days, or over large stores: settings that it reads only at its start. They halve what a worker
 * with many long rollouts, a gateway with long answers, or an export takes of its node's memory.
 */
import { join } from 'node:path';

export const LASTING = {
  // By default each heap keeps 64 MiB for new objects alone, and grows to several times what lives before it collects again; buffers
  // that nobody uses any more wait for that too. (`npm run bench -- --only memory` shows the bytes and their CPU.)
  flags: ['--max-semi-space-size=4', '--heap-growing-percent=60'],
  settings: {
    // Freed bodies of requests and answers go back to the system, and not into the allocator's many pools.
    MALLOC_ARENA_MAX: '2',
    MALLOC_MMAP_THRESHOLD_: '131072',
    MALLOC_TRIM_THRESHOLD_: '131072',
  },
};

/** Sources are stripped of their types and compiled once, not at every start and in every thread. */
export const COMPILED = join(import.meta.dirname, '../../node_modules/.cache/swefarm');
