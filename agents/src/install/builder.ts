/** What every kind of lock file has in common, and how its contents and the answers of installers are checked. */
import { SwefarmError } from '@swefarm/shared';
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

/** Returns the first problem that a schema found, with its field. */
export const describeIssue = ({ issues: [issue] }: z.ZodError): string =>
  `${issue?.path.join('.') || 'the file'}: ${issue?.message}`;

/** Checks what a program answered. Throws SwefarmError build_step, which names program and field. */
export function requireAnswer<T>(program: string, schema: z.ZodType<T>, answer: unknown): T {
  const read = schema.safeParse(answer);
  if (read.success) return read.data;
  throw new SwefarmError(
    'build_step',
    `${program} answered in another form than expected (${describeIssue(read.error)}): try another version of it`,
  );
}
