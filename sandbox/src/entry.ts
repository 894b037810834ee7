/** What the farm needs of a runtime before it opens one. Each runtime's folder has its entry; `node/runtimes.ts` lists them. */
import type { WorkerConfig } from '@swefarm/shared';
import type { Logger } from 'pino';
import type { Runtime } from './runtime.ts';

export type RuntimeEntry = {
  /** Whether `--runtime auto` tries it on a node with this configuration. */
  isAutomatic(config: WorkerConfig): boolean;
  /** Socket of its engine, which can pull images for other uses too; absent: it has no engine. */
  engineSocket?(config: WorkerConfig): string;
  /** Opens it even when it is unusable: `check` reports that. Throws UsageError for settings that cannot be used. */
  open(config: WorkerConfig, log: Logger): Promise<Runtime>;
};
