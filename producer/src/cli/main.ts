/** The command line `swefarm`: a file per command, and one place for errors and exit codes. */
import { catchEscaped, errorMessage, escapedExit, SwefarmError } from '@swefarm/shared';
import { Command, CommanderError } from 'commander';
import { EXIT, errorExitCode } from '../run/exit.ts';
import { addAcl } from './acl.ts';
import { addCancel } from './cancel.ts';
import { addCollect } from './collect.ts';
import { addDataset } from './dataset.ts';
import { addDoctor } from './doctor.ts';
import { addDrain } from './drain.ts';
import { addEval } from './eval.ts';
import { addExport } from './export.ts';
import { addHealth } from './health.ts';
import { addImages } from './images.ts';
import { addImport } from './import.ts';
import { addLogs } from './logs.ts';
import { addPause, addResume } from './pause.ts';
import { addPolicy } from './policy.ts';
import { addPreds } from './preds.ts';
import { addRedis } from './redis.ts';
import { addRegrade } from './regrade.ts';
import { addRemove } from './remove.ts';
import { addReport } from './report.ts';
import { addRollout } from './rollout.ts';
import { addScore } from './score.ts';
import { addSelect } from './select.ts';
import { addServe } from './serve.ts';
import { addShow } from './show.ts';
import { addStatus } from './status.ts';
import { addSubmit } from './submit.ts';
import { say } from './terminal.ts';
import { addWatch } from './watch.ts';

const EXIT_CODES = `
Exit codes: 0 all rollouts are judged (or each group has --min-group), 10 some are
not, 11 a group is below --min-group, 12 infrastructure is unusable, 2 wrong usage,
130 interrupted.`;

const program = new Command('swefarm')
  .description(
    'Run rollouts of software-engineering agents: submit them, let workers run and grade them, collect the results.',
  )
  .showHelpAfterError('(--help shows all options)')
  .showSuggestionAfterError()
  .exitOverride()
  .addHelpText('after', EXIT_CODES);

for (const add of [
  addRollout,
  addEval,
  addExport,
  addImport,
  addPreds,
  addRegrade,
  addSubmit,
  addCollect,
  addServe,
  addReport,
  addScore,
  addSelect,
  addStatus,
  addWatch,
  addShow,
  addLogs,
  addCancel,
  addRemove,
  addPause,
  addResume,
  addDrain,
  addPolicy,
  addHealth,
  addDataset,
  addImages,
  addRedis,
  addAcl,
  addDoctor,
])
  add(program);

// A command without a handler for SIGTERM cannot end in order, so it ends at once.
catchEscaped('swefarm', () => process.emit('SIGTERM', 'SIGTERM'));

// It is not an error when a reader closes the pipe (`| head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.interrupted);
  throw error;
});

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = report(error);
}
// Idle connections must not keep the process alive.
process.exit(escapedExit() ?? process.exitCode);

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
