/** The worker's library surface: runtimes by configuration and the simulated worker, for the benchmarks. The farm starts main.ts. */
export { openRuntime } from './node/runtimes.ts';
export { simulateWorker } from './simulated.ts';
