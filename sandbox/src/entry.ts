/** The description of a runtime before it is opened. Each runtime's folder has an entry; worker/src/node/runtimes.ts lists them. */
import type { WorkerConfig } from '@swefarm/shared';
import type { Logger } from 'pino';
import type { Runtime } from './runtime.ts';

export type RuntimeEntry = {
  /** Whether `--runtime auto` tries it on a node with this configuration. */
  isAutomatic(config: WorkerConfig): boolean;
  /** Socket of its engine, which can pull images for other uses too; absent: no engine. */
  engineSocket?(config: WorkerConfig): string;
  /** Opens the runtime even when it is unusable; `check` reports that. Throws UsageError for unusable settings. */
  open(config: WorkerConfig, log: Logger): Promise<Runtime>;
};
