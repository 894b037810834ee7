/** The command line `swefarm`: finds the command by name and loads only the source of this command. */
import { Command, CommanderError } from 'commander';
import { COMMANDS, withGlobalOptions } from './commands.ts';

const EXIT_CODES = `
Exit codes: 0 all rollouts are judged (or each group has --min-group), 10 some are
not, 11 a group is below --min-group, 12 infrastructure is unusable, 2 wrong usage,
130 interrupted.`;

const program = withGlobalOptions(new Command('swefarm'))
  .showHelpAfterError('(--help shows all options)')
  .showSuggestionAfterError()
  .exitOverride()
  .addHelpText('after', EXIT_CODES);

// A reader that closes the pipe (`| head`) is not an error.
process.stdout.on('error', async (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  const { EXIT } = await import('./exit.ts');
  process.exit(EXIT.interrupted);
});

const words = process.argv.slice(2);
if (words[0] === '--version' || words[0] === '-V') {
  const { softwareVersion } = await import('@swefarm/shared');
  console.log(softwareVersion());
  process.exit(0);
}
const name = words[0] === 'help' ? words[1] : words[0];
const entry = COMMANDS.find((one) => one.name === name);

if (entry) {
  const { runCommand } = await import('./run.ts');
  await runCommand(program, entry);
} else {
  for (const { name, summary } of COMMANDS) program.command(name).description(summary);
  try {
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    const { EXIT } = await import('./exit.ts');
    process.exitCode = error.exitCode === 0 ? EXIT.allJudged : EXIT.usage;
  }
}
