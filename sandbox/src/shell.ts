/**
 * A bash that stays open in a container. The environment is activated once, and every command runs in a forked subshell. If a command
 * breaks the shell, a new one is opened, and the field `note` of the result reports this.
 */
import { type Ending, errorMessage, newId, RolloutFailure, retry, waitAtMost } from '@swefarm/shared';
import type { CommandResult, RunOptions, Shell } from './command.ts';
import { SandboxKilledError } from './command.ts';
import { Controller, hasRisen, parseCount } from './controller.ts';
import { killCommand } from './kill.ts';
import { requireOwnKills } from './memorygroup.ts';
import { type Reply, ShellLostError } from './reply.ts';
import type { Container } from './runtime.ts';

/** Timeout of the start and the activation. A conda environment loads slowly from a cold, busy disk. */
const OPEN_TIMEOUT_MS = 60_000;
const PROBE_MS = 30_000;
const REOPEN_TRIES = 5;
const REOPEN_PAUSE_MS = 500;
/** Timeout of the controller's answer after its command was killed. */
const AFTER_KILL_MS = 6_000;
const NO_PREPARATION: Preparation = { argv: [], timeoutMs: 0 };

/**
 * A command line that runs once, in parallel with the activation and in the same exec, because an exec costs more than most commands.
 * The command line ends before the first command of the shell begins.
 */
export type Preparation = { argv: readonly string[]; timeoutMs: number };

/** The exit code of a preparation, and up to 4 KiB of its output. */
export type PreparationResult = { exitCode: number; output: Buffer };

export type ShellOptions = {
  /** Shell text that runs once in the controller, e.g. `source …/activate testbed`; '' for none. */
  activate: string;
  log?: { debug(fields: Record<string, unknown>, message: string): void };
  signal?: AbortSignal;
};

/**
 * Opens a shell. Throws RolloutFailure `no_bash` if the image has no working bash, `sandbox_lost` if the container is gone or the node
 * is at fault, SandboxKilledError if a limit of the container killed it.
 */
export async function openShell(container: Container, options: ShellOptions): Promise<Shell> {
  return (await openPreparedShell(container, options, NO_PREPARATION)).shell;
}

/** Opens a shell as {@link openShell} does, and runs a preparation. */
export async function openPreparedShell(
  container: Container,
  options: ShellOptions,
  preparation: Preparation,
): Promise<{ shell: Shell; prepared: PreparationResult }> {
  const shell = new PersistentShell(container, options);
  const limit = AbortSignal.timeout(OPEN_TIMEOUT_MS + preparation.timeoutMs);
  const { prepared } = await shell.open(options.signal ?? limit, preparation);
  return { shell, prepared };
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const ending = await waitAtMost(promise, ms);
  return ending.by === 'itself' ? ending.value : undefined;
}

class PersistentShell implements Shell {
  readonly #container: Container;
  readonly #options: ShellOptions;
  readonly #scratch = `.sf-${newId()}`;
  #controller: Controller | null = null;
  #seq = 0;
  #queue: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(container: Container, options: ShellOptions) {
    this.#container = container;
    this.#options = options;
  }

  async open(
    signal: AbortSignal,
    preparation: Preparation = NO_PREPARATION,
  ): Promise<{ controller: Controller; prepared: PreparationResult }> {
    const startedAt = performance.now();
    const controller = await Controller.start(
      this.#container,
      { activate: this.#options.activate, scratch: this.#scratch, preparation: preparation.argv },
      signal,
    );
    const timeoutMs = Math.max(OPEN_TIMEOUT_MS, preparation.timeoutMs);
    let ending: Ending<PreparationResult>;
    try {
      ending = await waitAtMost(controller.ready(), timeoutMs, signal);
    } catch (error) {
      controller.close();
      await this.#throwIfDead();
      throw await this.#openFailure('bash does not start in the container', error);
    }
    if (ending.by !== 'itself') {
      controller.close();
      signal.throwIfAborted();
      throw await this.#openFailure(`the shell did not answer in ${timeoutMs / 1000} s`);
    }
    this.#controller = controller;
    this.#options.log?.debug({ seconds: (performance.now() - startedAt) / 1000 }, 'shell opened');
    return { controller, prepared: ending.value };
  }

  /** Returns the failure of an opening. If bash runs, the node was the cause, and a retry may help; else the image has no working bash. */
  async #openFailure(message: string, cause?: unknown): Promise<RolloutFailure> {
    const options = { timeoutMs: PROBE_MS, maxOutputBytes: 1024, signal: AbortSignal.timeout(PROBE_MS) };
    const bashRuns = await this.#container.exec(['bash', '-c', 'exit 0'], options).then(
      (result) => result.exitCode === 0,
      () => false,
    );
    if (!bashRuns) await this.#throwIfDead();
    return new RolloutFailure(bashRuns ? 'sandbox_lost' : 'no_bash', message, { cause });
  }

  run(command: string, options: RunOptions): Promise<CommandResult> {
    const turn = this.#queue
      .then(() => this.#run(command, options))
      .catch(async (error: unknown) => {
        // If a limit of the sandbox ended the container, SandboxKilledError replaces the failure.
        if (error instanceof RolloutFailure) await this.#throwIfDead();
        throw error;
      });
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  async #run(command: string, options: RunOptions): Promise<CommandResult> {
    options.signal.throwIfAborted();
    if (this.#isClosed) throw new RolloutFailure('sandbox_lost', 'the shell was closed');
    const open = this.#controller;
    const controller = open && !open.isLost ? open : await this.#reopen(options.signal);
    const seq = ++this.#seq;
    const endBytes = Math.max(1, Math.ceil(options.maxOutputBytes / 2));
    const startedAt = performance.now();
    const seconds = () => (performance.now() - startedAt) / 1000;
    // A command line cannot contain NUL; bash drops NUL from scripts too.
    const answer = controller.request('run', seq, endBytes, Buffer.from(command.replaceAll('\0', '')));
    const ended = await replyOrReason(answer, options);
    if (ended instanceof ShellLostError) {
      return this.#afterLoss(controller, seq, endBytes, seconds(), 'shell_reopened', options);
    }
    if (ended === 'timeout' || ended === 'abort') {
      const late = await this.#kill(controller, seq, answer);
      options.signal.throwIfAborted();
      if (!late) return this.#afterLoss(controller, seq, endBytes, seconds(), 'timed_out', options);
      await controller.account(late);
      return { ...outputOf(late, endBytes), exitCode: null, seconds: seconds(), note: 'timed_out' };
    }
    const exitCode = Number(ended.fields[0]);
    const risen = await controller.account(ended);
    if (risen.oom) await requireOwnKills(this.#container);
    // The memory limit killed a process of this command, or the pids limit made the command fail.
    const isLimited = risen.oom || (exitCode !== 0 && risen.forks);
    const note = isLimited ? 'killed_by_limit' : null;
    return { ...outputOf(ended, endBytes), exitCode, seconds: seconds(), note };
  }

  /** Kills the running command from outside. Returns the controller's reply; null if the controller does not answer. */
  async #kill(controller: Controller, seq: number, answer: Promise<Reply>): Promise<Reply | null> {
    const replyOrNull = answer.catch(() => null);
    const isAlone = await this.#killCommand(controller, seq, controller.pids);
    const reply = isAlone ? await within(replyOrNull, AFTER_KILL_MS) : null;
    if (reply) return reply;
    // The controller hangs, or was killed with all processes.
    if (isAlone) await this.#container.killProcesses();
    controller.close();
    return null;
  }

  /** Returns true if only the command was killed, false if all processes were killed. */
  #killCommand({ nonce }: Controller, seq: number, spared: readonly number[]): Promise<boolean> {
    return killCommand(
      (argv, options) => this.#container.exec(argv, options),
      { mark: `${nonce}.${seq}`, spare: spared, privatePids: this.#container.privatePids ?? false },
      () => this.#container.killProcesses(),
    );
  }

  /** Handles the death of a shell during a command: kills the command's leftovers, recovers the output, opens a new shell. */
  async #afterLoss(
    controller: Controller,
    seq: number,
    endBytes: number,
    seconds: number,
    note: 'shell_reopened' | 'timed_out',
    options: RunOptions,
  ): Promise<CommandResult> {
    this.#controller = null;
    await this.#throwIfDead();
    await this.#killCommand(controller, seq, controller.pids.slice(0, 1));
    const fresh = await this.#reopen(options.signal);
    const isKilled = hasRisen(controller.oomKills, fresh.oomKills);
    if (isKilled) await requireOwnKills(this.#container);
    const recovered = await this.#recover(fresh, seq, endBytes);
    return {
      ...(recovered ? outputOf(recovered, endBytes) : { head: Buffer.alloc(0), tail: null, outputBytes: 0 }),
      exitCode: null,
      seconds,
      note: isKilled && note === 'shell_reopened' ? 'killed_by_limit' : note,
    };
  }

  async #recover(controller: Controller, seq: number, endBytes: number): Promise<Reply | null> {
    try {
      return (await within(controller.request('recover', seq, endBytes), AFTER_KILL_MS)) ?? null;
    } catch (error) {
      this.#options.log?.debug({ error: errorMessage(error) }, 'output of a lost shell not recovered');
      return null;
    }
  }

  async #reopen(signal: AbortSignal): Promise<Controller> {
    this.#controller?.close();
    this.#controller = null;
    const reopen = async (): Promise<Controller> => {
      await this.#throwIfDead();
      this.#options.log?.debug({ seq: this.#seq }, 'shell reopened');
      return (await this.open(signal)).controller;
    };
    // The kill that ends a fork bomb also ends a new shell, so opening one may need several tries.
    const isPassing = (error: unknown): boolean =>
      !this.#isClosed && error instanceof RolloutFailure && error.failureClass === 'sandbox_lost';
    return await retry(reopen, { pauseMs: REOPEN_PAUSE_MS, tries: REOPEN_TRIES, isPassing, signal });
  }

  async #throwIfDead(): Promise<void> {
    const state = await this.#container.state();
    if (state === 'running') return;
    this.#isClosed = true;
    if (state === 'own_limit') {
      throw new SandboxKilledError('the sandbox was killed by its own limit');
    }
    throw new RolloutFailure(
      'sandbox_lost',
      state === 'gone' ? 'the container is gone' : 'the container stopped',
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const controller = this.#controller;
    this.#controller = null;
    controller?.close();
  }
}

async function replyOrReason(
  answer: Promise<Reply>,
  options: RunOptions,
): Promise<Reply | ShellLostError | 'timeout' | 'abort'> {
  const replyOrLoss = answer.catch((error: unknown) => {
    if (error instanceof ShellLostError) return error;
    throw error;
  });
  const ending = await waitAtMost(replyOrLoss, options.timeoutMs, options.signal);
  return ending.by === 'itself' ? ending.value : ending.by;
}

function outputOf(reply: Reply, endBytes: number): Pick<CommandResult, 'head' | 'tail' | 'outputBytes'> {
  const { body, fields } = reply;
  const split = parseCount(fields[2]);
  const total = parseCount(fields[1]) ?? body.length;
  if (split !== null)
    return { head: body.subarray(0, split), tail: body.subarray(split), outputBytes: total };
  if (body.length <= 2 * endBytes) return { head: body, tail: null, outputBytes: body.length };
  return { head: body.subarray(0, endBytes), tail: body.subarray(-endBytes), outputBytes: body.length };
}
