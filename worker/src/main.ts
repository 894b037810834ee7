import { catchEscaped, errorMessage, escapedExit, SwefarmError, UsageError } from '@swefarm/shared';
import { workerProgram } from './commandline.ts';
import { EXIT } from './exit.ts';

/** Two signals within this time count as one: a batch scheduler signals every process of a job, and a launcher forwards its own signal. */
const SAME_SIGNAL_MS = 1_500;

const stop = new AbortController();
let stoppedAt = 0;
catchEscaped('swefarm-worker', () => {
  stop.abort();
  return true;
});
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    // A second signal exits at once. Other workers claim the running rollouts when their locks expire.
    if (stop.signal.aborted && Date.now() - stoppedAt > SAME_SIGNAL_MS) process.exit(130);
    stoppedAt ||= Date.now();
    stop.abort();
  });
}

const program = workerProgram(stop.signal);

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof Error && 'code' in error && String(error.code).startsWith('commander.')) {
    process.exitCode = 'exitCode' in error && error.exitCode === 0 ? 0 : EXIT.usage;
  } else {
    console.error(
      `swefarm-worker: ${error instanceof SwefarmError ? errorMessage(error) : (error as Error).stack}`,
    );
    process.exitCode = error instanceof UsageError ? EXIT.usage : EXIT.unusable;
  }
}
// Idle sockets of an endpoint or an engine would prevent the exit.
process.exit(escapedExit() ?? process.exitCode);
