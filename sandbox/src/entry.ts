/** The description of a runtime before it is opened. Each runtime's folder has an entry; worker/src/node/runtimes.ts lists them. */
import type { WorkerConfig } from '@swefarm/shared';
import type { Logger } from 'pino';
import type { Runtime } from './runtime.ts';

export type RuntimeEntry = {
  /** Whether `--runtime auto` tries this runtime on a node with this configuration. */
  isAutomatic(config: WorkerConfig): boolean;
  /** Socket of the runtime's engine, which can pull images for other uses too; absent: no engine. */
  engineSocket?(config: WorkerConfig): string;
  /** Opens the runtime even if it is unusable; `check` reports the problem. Throws UsageError for unusable settings. */
  open(config: WorkerConfig, log: Logger): Promise<Runtime>;
};
