/** What others may build on: the sandbox with its shell and the simulated worker, as the benchmarks do. The farm itself starts the command. */
export { createWorkerMetrics } from './metrics/workermetrics.ts';
export { openRuntime } from './node/runtimes.ts';
export type { CommandResult, Shell } from './sandbox/command.ts';
export type { Container, ContainerSpec, Runtime } from './sandbox/runtime.ts';
export { openShell } from './sandbox/shell.ts';
export { type SimulatedWorker, type Simulation, simulateWorker } from './simulated.ts';
