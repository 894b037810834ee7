/** Exports for benchmarks; the farm starts main.ts. */
export { openRuntime } from './node/runtimes.ts';
