/** What every kind of lock file has in common. */
import { z } from 'zod';

/** The fields that all lock files have. `version`: of the agent. */
export const LockFrame = z.object({
  format: z.literal('swefarm-lock-1'),
  kind: z.string(),
  version: z.string().min(1).max(80),
});

export type BuildContext = {
  /** Path of the bundle inside sandboxes. */
  mount: string;
  /** Folder with the source of an agent that no registry has; null: none was given. */
  source: string | null;
  signal: AbortSignal;
  /** Receives lines about the progress. */
  log: (line: string) => void;
};

/** Writes the programs of a lock file into an empty folder. Throws UsageError for a bad lock, UnusableError for a registry. */
export type Builder = (lock: unknown, folder: string, context: BuildContext) => Promise<void>;

/** A path below a folder, without `..`. */
export const SafePath = z
  .string()
  .regex(/^(?!\/)(?!(.*\/)?\.\.(\/|$)).+$/, { error: 'expected a path below the bundle' });
