/** What every kind of lock file has in common. */
import { z } from 'zod';

/** The fields that all lock files have. `version`: of the agent. */
export const LockFrame = z.object({
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

export type RelockOptions = {
  /** Version of the agent. */
  version: string;
  source: string | null;
  signal: AbortSignal;
};

/** A path below a folder, without `..`. */
export const SafePath = z
  .string()
  .regex(/^(?!\/)(?!(.*\/)?\.\.(\/|$)).+$/, { error: 'expected a path below the bundle' });
