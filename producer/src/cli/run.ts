/** Runs one command, prints its errors and ends the process with the exit code. */
import { catchEscaped, errorMessage, escapedExit, SwefarmError, UsageError } from '@swefarm/shared';
import { type Command, CommanderError } from 'commander';
import type { CommandEntry } from './commands.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { printStatus } from './terminal.ts';

export async function runCommand(program: Command, { name, summary, load }: CommandEntry): Promise<never> {
  const declared = await load();
  declared(program, name).description(summary);
  // After an uncaught exception, commands with a handler for SIGTERM stop in order, and other commands end at once.
  catchEscaped('swefarm', () => process.emit('SIGTERM', 'SIGTERM'));
  try {
    await program.parseAsync();
  } catch (error) {
    process.exitCode = report(error);
  }
  // Idle connections must not keep the process alive.
  process.exit(escapedExit() ?? process.exitCode);
}

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
  if (error instanceof SwefarmError) {
    printStatus(`swefarm: ${errorMessage(error)}`);
    return error.code === 'aborted' ? EXIT.interrupted : errorExitCode(error);
  }
  if (error instanceof Error && error.name === 'AbortError') return EXIT.interrupted;
  printStatus(
    `swefarm: unexpected error, please report it: ${error instanceof Error ? error.stack : String(error)}`,
  );
  return EXIT.unusable;
}

export function errorExitCode(error: unknown): ExitCode {
  const isUsage = error instanceof SwefarmError && USAGE_CODES.has(error.code);
  return isUsage || error instanceof UsageError ? EXIT.usage : EXIT.unusable;
}

const USAGE_CODES = new Set(['bad_rollout_id', 'run_differs', 'run_unknown']);
