/** Declares the commands of `swefarm-worker`. */
import { configOptions, loadConfig, renderFinding, silentLog, softwareVersion } from '@swefarm/shared';
import { Argument, Command } from 'commander';
import { EXIT } from './exit.ts';
import { diagnose } from './node/doctor.ts';
import { IMAGE_ACTIONS, type ImageAction, readNeeded, runImages } from './node/images.ts';
import { runWorker } from './run.ts';
import { openReplayedShell } from './shell.ts';

/** Adds a flag for every key of the configuration, but not for secrets, because `ps` shows flags. The Redis URL has a flag. */
function withConfig(command: Command): Command {
  command.option('--config <file>', 'YAML or JSON file with any of these keys');
  for (const { key, flag, doc, secret } of configOptions('worker')) {
    if (!secret || key === 'redis_url') command.option(flag, doc);
  }
  return command;
}

/** An example of each command. The help of the command ends with the example. */
const EXAMPLES: Readonly<Record<string, string>> = {
  run: 'swefarm-worker run --redis-url redis://farm:6379 --runtime docker --concurrency 16',
  'dry-run': 'swefarm-worker dry-run play.json --redis-url redis://farm:6379',
  doctor: 'swefarm-worker doctor --runtime docker --policy-url http://localhost:8000/v1',
  images: 'swefarm-worker images list --runtime docker',
  shell: 'swefarm-worker shell shell.json --runtime docker',
};

/** Returns the parser of `swefarm-worker`. `signal` ends the command that runs. */
export function workerProgram(signal: AbortSignal): Command {
  const program = new Command('swefarm-worker')
    .description('A stateless worker of the farm: pulls rollouts, runs and grades them on this node.')
    .version(softwareVersion())
    .exitOverride();
  addRuns(program, signal);
  addTools(program, signal);
  for (const one of program.commands) one.addHelpText('after', `\nExample:\n  ${EXAMPLES[one.name()]}`);
  return program;
}

/** Adds the commands that answer rollouts. */
function addRuns(program: Command, signal: AbortSignal): void {
  withConfig(program.command('run'))
    .description('pull rollouts until told to stop; SIGTERM drains, a second one stops at once')
    .action(async (flags: Record<string, unknown>) => {
      await runWorker(loadConfig('worker', { flags }), signal).catch((error: unknown) => {
        // The worker was stopped while it waited for Redis or its engine, before anything had started.
        if (!signal.aborted || (error as Error).name !== 'AbortError') throw error;
      });
    });

  withConfig(program.command('dry-run'))
    .description('answer the rollouts of dry runs from stored ones; see swefarm serve --replay')
    .argument('<file>', 'file that swefarm serve writes')
    .action(async (file: string, flags: Record<string, unknown>) => {
      const { readPlay } = await import('./dryrun/file.ts');
      const { play, concurrency } = await readPlay(file);
      await runWorker({ ...loadConfig('worker', { flags }), runtime: 'host', concurrency }, signal, play);
    });
}

/** Adds the commands that check the node, manage its images and open shells. */
function addTools(program: Command, signal: AbortSignal): void {
  withConfig(program.command('doctor'))
    .description("this node's own view: runtime, Redis, disk, and the policy endpoint when given")
    .option('--policy-url <url>', 'an OpenAI-compatible endpoint that rollouts will use')
    .option('--json', 'findings as JSON')
    .action(async ({ policyUrl, json, ...flags }: Record<string, unknown>) => {
      const findings = await diagnose(
        loadConfig('worker', { flags }),
        typeof policyUrl === 'string' ? policyUrl : null,
        signal,
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
      process.exitCode = await openReplayedShell(file, command, loadConfig('worker', { flags }), signal);
    });
}
