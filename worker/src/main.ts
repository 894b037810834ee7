import {
  catchEscaped,
  configOptions,
  errorMessage,
  escapedExit,
  loadConfig,
  renderFinding,
  SwefarmError,
  silentLog,
  softwareVersion,
  UsageError,
} from '@swefarm/shared';
import { Argument, Command } from 'commander';
import { diagnose } from './node/doctor.ts';
import { IMAGE_ACTIONS, type ImageAction, readNeeded, runImages } from './node/images.ts';
import { runWorker } from './run.ts';
import { openReplayedShell } from './shell.ts';

/** Exit codes. 2: usage; 10: an image is missing, changed or failed; 12: any other error; 70: uncaught error; 130: stopped by a signal. */
const EXIT = { usage: 2, missing: 10, unusable: 12, interrupted: 130 } as const;

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

/** Adds a flag for every key of the configuration, but not for secrets, because `ps` shows flags. The Redis URL has a flag. */
function withConfig(command: Command): Command {
  command.option('--config <file>', 'YAML or JSON file with any of these keys');
  for (const { key, flag, doc, secret } of configOptions('worker')) {
    if (!secret || key === 'redis_url') command.option(flag, doc);
  }
  return command;
}

const program = new Command('swefarm-worker')
  .description('A stateless worker of the farm: pulls rollouts, runs and grades them on this node.')
  .version(softwareVersion())
  .exitOverride();

withConfig(program.command('run'))
  .description('pull rollouts until told to stop; SIGTERM drains, a second one stops at once')
  .action(async (flags: Record<string, unknown>) => {
    await runWorker(loadConfig('worker', { flags }), stop.signal).catch((error: unknown) => {
      // The worker was stopped while it waited for Redis or its engine, before anything had started.
      if (!stop.signal.aborted || (error as Error).name !== 'AbortError') throw error;
    });
  });

withConfig(program.command('dry-run'))
  .description('answer the rollouts of dry runs from stored ones; see swefarm serve --replay')
  .argument('<file>', 'file that swefarm serve writes')
  .action(async (file: string, flags: Record<string, unknown>) => {
    const { readPlay } = await import('./dryrun/file.ts');
    const { play, concurrency } = await readPlay(file);
    await runWorker({ ...loadConfig('worker', { flags }), runtime: 'host', concurrency }, stop.signal, play);
  });

withConfig(program.command('doctor'))
  .description("this node's own view: runtime, Redis, disk, and the policy endpoint when given")
  .option('--policy-url <url>', 'an OpenAI-compatible endpoint that rollouts will use')
  .option('--json', 'findings as JSON')
  .action(async ({ policyUrl, json, ...flags }: Record<string, unknown>) => {
    const findings = await diagnose(
      loadConfig('worker', { flags }),
      typeof policyUrl === 'string' ? policyUrl : null,
      stop.signal,
    );
    if (json) console.log(JSON.stringify(findings, null, 2));
    else for (const finding of findings) console.log(renderFinding(finding));
    if (findings.some(({ status }) => status === 'fail')) process.exitCode = EXIT.unusable;
  });

withConfig(program.command('images'))
  .description(
    'list, pull, convert, prune or verify images of this node, with JSON lines on stdin and stdout; see swefarm images',
  )
  .addArgument(new Argument('<action>').choices(IMAGE_ACTIONS))
  .action(async (action: ImageAction, flags: Record<string, unknown>) => {
    const config = loadConfig('worker', { flags });
    const needed = await readNeeded(process.stdin);
    const print = (line: object): void => console.log(JSON.stringify(line));
    const { signal } = stop;
    const complete = await runImages(action, needed, { config, log: silentLog(), signal, print }).catch(
      (error: unknown) => {
        if (!signal.aborted) throw error;
        process.exitCode = EXIT.interrupted;
        return true;
      },
    );
    if (!complete) process.exitCode = EXIT.missing;
  });

withConfig(program.command('shell'))
  .description('commands in the sandbox of a stored rollout, as it was after a turn; see swefarm shell')
  .argument('<file>', 'file that swefarm shell writes')
  .argument('[command...]', 'run this alone')
  .action(async (file: string, words: string[], flags: Record<string, unknown>) => {
    const command = words.length > 0 ? words.join(' ') : null;
    process.exitCode = await openReplayedShell(file, command, loadConfig('worker', { flags }), stop.signal);
  });

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
