/** The worker's library surface: the sandbox with its shell and the simulated worker, for the benchmarks. The farm starts main.ts. */
export { createWorkerMetrics } from './metrics/workermetrics.ts';
export { openRuntime } from './node/runtimes.ts';
export type { CommandResult, Shell } from './sandbox/command.ts';
export type { Container, ContainerSpec, Runtime } from './sandbox/runtime.ts';
export { openShell } from './sandbox/shell.ts';
export { type SimulatedWorker, type Simulation, simulateWorker } from './simulated.ts';
