/** Runs one command: the one place for errors, exit codes and the end of the process. */
import { catchEscaped, errorMessage, escapedExit, SwefarmError } from '@swefarm/shared';
import { type Command, CommanderError } from 'commander';
import type { CommandEntry } from './commands.ts';
import { errorExitCode } from './errorexit.ts';
import { EXIT } from './exit.ts';
import { say } from './terminal.ts';

/** Runs the command of `entry` with the arguments of this process, then ends the process with the command's exit code. */
export async function runCommand(program: Command, { name, summary, load }: CommandEntry): Promise<never> {
  const declared = await load();
  declared(program, name).description(summary);

  // A command without a handler for SIGTERM cannot end in order, so it ends at once.
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
    say(`swefarm: ${errorMessage(error)}`);
    return error.code === 'aborted' ? EXIT.interrupted : errorExitCode(error);
  }
  if (error instanceof Error && error.name === 'AbortError') return EXIT.interrupted;
  say(`swefarm: unexpected error, please report it: ${error instanceof Error ? error.stack : String(error)}`);
  return EXIT.unusable;
}
