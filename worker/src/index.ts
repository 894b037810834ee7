/** Exports for benchmarks and tests; the farm starts main.ts. */
export { openRuntime } from './node/runtimes.ts';
export { simulateWorker } from './simulated.ts';
