/** The exit code for an error that a command did not handle. */
import { SwefarmError, UsageError } from '@swefarm/shared';
import { EXIT, type ExitCode } from './exit.ts';

/** The exit code for an error that reached the top level. */
export function errorExitCode(error: unknown): ExitCode {
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof SwefarmError && USAGE_CODES.has(error.code)) return EXIT.usage;
  return EXIT.unusable;
}

const USAGE_CODES = new Set(['bad_rollout_id', 'run_differs', 'run_unknown']);
