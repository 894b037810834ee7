/**
 * Runs a local worker as a process, and restarts the worker a limited number of times. If the worker cannot start, the run ends with the
 * last error in the worker's log.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import {
  dieWithParent,
  exponentialBackoff,
  lastingCommand,
  sleep,
  UnusableError,
  waitAtMost,
} from '@swefarm/shared';
import { readLastError } from './lasterror.ts';

export type LocalWorkerOptions = {
  /** Command and first arguments; default: the worker package of this repository. */
  command?: readonly string[] | undefined;
  args: readonly string[];
  /** Additional arguments of the first start. */
  firstArgs: readonly string[];
  /** Returns the number of results of the run. A start with new results resets the count of restarts. */
  results: () => number;
  environment: Readonly<Record<string, string | undefined>>;
  logFile: string;
  onNote: (text: string) => void;
  /** Returns the pause before a restart in ms. `restart` counts from 1. */
  pauseMs?: (restart: number) => number;
};

export interface LocalWorker extends AsyncDisposable {
  /** Resolves with the reason why the worker cannot run, or with null after `drain` or `kill`. */
  readonly ended: Promise<UnusableError | null>;
  /** Lets the worker finish its rollouts or return them to the queue. Kills the process after `limitMs`. Resolves at its end. */
  drain(limitMs?: number): Promise<void>;
  /** Kills the worker at once. Other workers claim the worker's rollouts when the locks expire. */
  kill(): void;
}

const OWN_WORKER = fileURLToPath(new URL('../../../worker/bin/swefarm-worker.mjs', import.meta.url));
const MOST_RESTARTS = 5;
const PAUSE_MS = exponentialBackoff(1_000, 15_000);
const DRAIN_MS = 90_000;
/** Exit codes of a worker that cannot start. Unless the worker had results, a restart would fail in the same way. */
const FINAL_EXITS = new Set([2, 12, 126, 127]);

export function startLocalWorker(options: LocalWorkerOptions): LocalWorker {
  const own = lastingCommand(OWN_WORKER);
  const command = options.command ?? own.command;
  const environment = { ...own.environment, ...options.environment };
  let child: ChildProcess | null = null;
  let stopping = false;

  const supervise = async (): Promise<UnusableError | null> => {
    const atFirst = options.results();
    for (let restarts = 0, starts = 0; ; restarts++, starts++) {
      const before = options.results();
      const args = [...options.args, ...(starts === 0 ? options.firstArgs : [])];
      const end = await runOnce([...command, ...args], { ...options, environment }, (running) => {
        child = running;
        if (stopping) running.kill('SIGTERM');
      });
      child = null;
      if (stopping) return null;
      const lastError = await readLastError(options.logFile);
      const how =
        end.error ?? (end.signal ? `was killed by ${end.signal}` : `ended with exit code ${end.code}`);
      if (options.results() > before) restarts = 0;
      const worked = options.results() > atFirst;
      const hopeless = end.error !== undefined || (FINAL_EXITS.has(end.code ?? 0) && !worked);
      if (hopeless || restarts >= MOST_RESTARTS) {
        const times = restarts > 0 ? ` after ${restarts} restarts without a result` : '';
        return new UnusableError(
          'worker_unusable',
          `the local worker ${how}${times}${lastError ? `: ${lastError}` : ''} (its log: ${options.logFile})`,
        );
      }
      options.onNote(`the local worker ${how}${lastError ? ` (${lastError})` : ''}; starting it again`);
      await sleep((options.pauseMs ?? PAUSE_MS)(restarts + 1));
      if (stopping) return null;
    }
  };

  const ended = supervise();
  const drain = async (limitMs = DRAIN_MS): Promise<void> => {
    if (!stopping) {
      stopping = true;
      child?.kill('SIGTERM');
    }
    if ((await waitAtMost(ended, limitMs)).by === 'timeout') {
      child?.kill('SIGKILL');
      await ended;
    }
  };
  return {
    ended,
    drain,
    kill() {
      stopping = true;
      child?.kill('SIGKILL');
    },
    [Symbol.asyncDispose]: () => drain(),
  };
}

type End = { code: number | null; signal: NodeJS.Signals | null; error?: string };

async function runOnce(
  command: readonly string[],
  { logFile, environment }: LocalWorkerOptions,
  onStart: (child: ChildProcess) => void,
): Promise<End> {
  await using log = await open(logFile, 'a');
  const [program = '', ...args] = dieWithParent(command);
  // `detached`: Ctrl-C at the terminal reaches only the producer, which then drains the worker.
  const child = spawn(program, args, { stdio: ['ignore', log.fd, log.fd], detached: true, env: environment });
  return await new Promise<End>((resolve) => {
    child.once('spawn', () => onStart(child));
    child.once('error', (error) =>
      resolve({ code: null, signal: null, error: `cannot be started (${error.message})` }),
    );
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
}
