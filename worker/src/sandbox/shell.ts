/**
 * A held-open bash in a container: environment activated once, every command in a forked subshell of it. The protocol's other
 * half is controller.sh. What a command does to the shell is mended by one exec and told in the result's note.
 */
import { readFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { type Ending, errorMessage, newId, RolloutFailure, retry, waitAtMost } from '@swefarm/shared';
import type { CommandResult, RunOptions, Shell } from './command.ts';
import { SandboxKilledError } from './command.ts';
import { killCommand } from './kill.ts';
import { type Reply, ReplyReader, ShellLostError } from './reply.ts';
import type { Container } from './runtime.ts';

/** The subshell's evaluation stands on line 1, where bash's messages about the command will say it is. */
const MAIN =
  'eval "$1"; while __sf_next; do ( __sf_enter; eval "$__sf_text" ) </dev/null >&5 2>&5 4>&- 5>&- 6<&- 7>&- 9>&- & __sf_finish $!; done';
const CONTROLLER = readFileSync(new URL('./controller.sh', import.meta.url), 'utf8');
/** Activation included: a conda environment on a cold, loaded disk takes its time. */
const OPEN_TIMEOUT_MS = 60_000;
/** For the question whether bash runs at all. */
const PROBE_MS = 30_000;
const REOPEN_TRIES = 5;
const REOPEN_PAUSE_MS = 500;
/** What the controller needs to answer after its command was killed. */
const AFTER_KILL_MS = 6_000;
const NOTHING_BESIDE: Beside = { argv: [], timeoutMs: 0 };
/** What a pipe holds, on top of what is kept. */
const PIPE_BYTES = 131_072;

/** A command line that is run once, beside the activation and in the same exec: another exec costs an engine more than most commands. */
export type Beside = { argv: readonly string[]; timeoutMs: number };

/** How it ended; of what it printed, up to 4 KiB. */
export type BesideEnd = { exitCode: number; output: Buffer };

export type ShellOptions = {
  /** Where every command starts. */
  workdir: string;
  /** Shell text run once in the controller, e.g. `source …/activate testbed`; '' for none. */
  activate: string;
  /** Exported to every command. */
  env: Record<string, string>;
  log?: { debug(fields: Record<string, unknown>, message: string): void };
  signal?: AbortSignal;
};

type Counters = { oomKills: number | null; forksRefused: number | null };

type Controller = Counters & {
  stream: Duplex;
  reader: ReplyReader;
  nonce: string;
  pid: number;
  watcher: number;
};

/**
 * Opens a shell. Throws RolloutFailure `no_bash` when the image has none that works, `sandbox_lost` when the container is
 * gone or the node is in the way, SandboxKilledError when its own limit killed it.
 */
export async function openShell(container: Container, options: ShellOptions): Promise<Shell> {
  const shell = new HeldShell(container, options);
  await shell.open(options.signal ?? AbortSignal.timeout(OPEN_TIMEOUT_MS));
  return shell;
}

/** As {@link openShell}. What it runs beside has ended before any command of the shell can begin. */
export async function openShellBeside(
  container: Container,
  options: ShellOptions,
  beside: Beside,
): Promise<{ shell: Shell; ended: BesideEnd }> {
  const shell = new HeldShell(container, options);
  const limit = AbortSignal.timeout(OPEN_TIMEOUT_MS + beside.timeoutMs);
  return { ended: await shell.open(options.signal ?? limit, beside), shell };
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const count = (word: string | undefined): number | null => (word && /^\d+$/.test(word) ? Number(word) : null);
const rose = (before: number | null, after: number | null): boolean =>
  before !== null && after !== null && after > before;

/** Undefined when it takes longer than `ms`. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const ending = await waitAtMost(promise, ms);
  return ending.by === 'itself' ? ending.value : undefined;
}

class HeldShell implements Shell {
  readonly #container: Container;
  readonly #options: ShellOptions;
  readonly #scratch = `.sf-${newId()}`;
  #controller: Controller | null = null;
  #seq = 0;
  #queue: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(container: Container, options: ShellOptions) {
    this.#container = container;
    this.#options = options;
  }

  /** Whose fault it is that no shell came up: where bash runs at all, the node was in the way and another try may help. */
  async #unopened(message: string, cause?: unknown): Promise<RolloutFailure> {
    const options = { timeoutMs: PROBE_MS, maxOutputBytes: 1024, signal: AbortSignal.timeout(PROBE_MS) };
    const bashRuns = await this.#container.exec(['bash', '-c', 'exit 0'], options).then(
      (result) => result.exitCode === 0,
      () => false,
    );
    if (!bashRuns) await this.#throwIfDead();
    return new RolloutFailure(bashRuns ? 'sandbox_lost' : 'no_bash', message, { cause });
  }

  async open(signal: AbortSignal, beside: Beside = NOTHING_BESIDE): Promise<BesideEnd> {
    const { workdir, activate, env, log } = this.#options;
    const nonce = newId() + newId();
    const startedAt = performance.now();
    const argv = ['bash', '--noprofile', '--norc', '-c', MAIN, 'bash', CONTROLLER];
    const stream = await this.#container.open(
      [...argv, nonce, this.#scratch, workdir, ...beside.argv],
      signal,
    );
    const reader = new ReplyReader(stream, nonce);
    const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`);
    const init = Buffer.from(`${exports.join('\n')}\n${activate}\n`.replaceAll('\0', ''));
    this.#write(stream, `init 0 ${init.length} 0\n`, init);
    const timeoutMs = Math.max(OPEN_TIMEOUT_MS, beside.timeoutMs);
    let ending: Ending<Reply>;
    try {
      ending = await waitAtMost(reader.next(0, 65_536), timeoutMs, signal);
    } catch (error) {
      stream.destroy();
      await this.#throwIfDead();
      throw await this.#unopened('bash does not start in the container', error);
    }
    if (ending.by !== 'itself') {
      stream.destroy();
      signal.throwIfAborted();
      throw await this.#unopened(`the shell did not answer in ${timeoutMs / 1000} s`);
    }
    const { fields, body } = ending.value;
    const [pid, watcher, , oom, refused, code] = fields;
    this.#controller = {
      stream,
      reader,
      nonce,
      pid: Number(pid),
      watcher: Number(watcher),
      ...(await this.#counters(oom, refused)),
    };
    log?.debug({ seconds: (performance.now() - startedAt) / 1000 }, 'shell opened');
    return { exitCode: count(code) ?? 0, output: body };
  }

  run(command: string, options: RunOptions): Promise<CommandResult> {
    const turn = this.#queue
      .then(() => this.#run(command, options))
      .catch(async (error: unknown) => {
        // Whatever failed because its own limit ended the sandbox is called so.
        if (error instanceof RolloutFailure) await this.#throwIfDead();
        throw error;
      });
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  async #run(command: string, options: RunOptions): Promise<CommandResult> {
    options.signal.throwIfAborted();
    if (this.#closed) throw new RolloutFailure('sandbox_lost', 'the shell was closed');
    if (!this.#controller || this.#controller.reader.lost) await this.#reopen(options.signal);
    const controller = this.#controller;
    if (!controller) throw new RolloutFailure('sandbox_lost', 'the shell could not be reopened');
    const seq = ++this.#seq;
    const keep = Math.max(1, Math.ceil(options.maxOutputBytes / 2));
    const startedAt = performance.now();
    // A NUL cannot be in a command line; bash itself drops it from a script.
    const text = Buffer.from(command.replaceAll('\0', ''));
    const answer = controller.reader.next(seq, 2 * keep + PIPE_BYTES);
    this.#write(controller.stream, `run ${seq} ${text.length} ${keep}\n`, text);
    const ended = await this.#await(answer, options);
    const seconds = () => (performance.now() - startedAt) / 1000;
    if (ended instanceof ShellLostError) {
      return this.#afterLoss(controller, seq, keep, seconds(), 'shell_reopened', options);
    }
    if (ended === 'timeout' || ended === 'abort') {
      const late = await this.#kill(controller, seq, answer);
      options.signal.throwIfAborted();
      if (!late) return this.#afterLoss(controller, seq, keep, seconds(), 'timed_out', options);
      await this.#account(controller, late);
      return { ...output(late, keep), exitCode: null, seconds: seconds(), note: 'timed_out' };
    }
    const exitCode = Number(ended.fields[0]);
    const limited = await this.#limited(controller, ended, exitCode);
    return {
      ...output(ended, keep),
      exitCode,
      seconds: seconds(),
      note: limited ? 'killed_by_limit' : null,
    };
  }

  /** The reply, or why it is no longer waited for. */
  async #await(
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

  /** Ends the running command from outside; the controller's reply, when it is still able to give one. */
  async #kill(controller: Controller, seq: number, answer: Promise<Reply>): Promise<Reply | null> {
    const quiet = answer.catch(() => null);
    const isAlone = await this.#killCommand(controller, seq, [controller.pid, controller.watcher]);
    const reply = isAlone ? await within(quiet, AFTER_KILL_MS) : null;
    if (reply) return reply;
    // The controller is wedged, or was ended with everything else: the shell is opened anew.
    if (isAlone) await this.#container.killProcesses?.();
    controller.stream.destroy();
    return null;
  }

  /** True when only the command was ended, false when everything in the container was. */
  #killCommand({ nonce }: Controller, seq: number, keep: readonly number[]): Promise<boolean> {
    return killCommand(
      (argv, options) => this.#container.exec(argv, options),
      { mark: `${nonce}.${seq}`, keep, privatePids: this.#container.privatePids ?? false },
      async () => this.#container.killProcesses?.(),
    );
  }

  /** The shell died under its command: what the command left is ended, what it printed is kept, a new shell is opened. */
  async #afterLoss(
    controller: Controller,
    seq: number,
    keep: number,
    seconds: number,
    note: 'shell_reopened' | 'timed_out',
    options: RunOptions,
  ): Promise<CommandResult> {
    this.#controller = null;
    await this.#throwIfDead();
    await this.#killCommand(controller, seq, [controller.pid]);
    await this.#reopen(options.signal);
    const fresh: Controller | null = this.#controller;
    const killed = rose(controller.oomKills, (fresh as Controller | null)?.oomKills ?? null);
    const recovered = await this.#recover(seq, keep);
    return {
      ...(recovered ? output(recovered, keep) : { head: Buffer.alloc(0), tail: null, outputBytes: 0 }),
      exitCode: null,
      seconds,
      note: killed && note === 'shell_reopened' ? 'killed_by_limit' : note,
    };
  }

  async #recover(seq: number, keep: number): Promise<Reply | null> {
    const controller = this.#controller;
    if (!controller) return null;
    const answer = controller.reader.next(seq, 2 * keep + PIPE_BYTES);
    this.#write(controller.stream, `recover ${seq} 0 ${keep}\n`, Buffer.alloc(0));
    try {
      return (await within(answer, AFTER_KILL_MS)) ?? null;
    } catch (error) {
      this.#options.log?.debug({ error: errorMessage(error) }, 'output of a lost shell not recovered');
      return null;
    }
  }

  async #reopen(signal: AbortSignal): Promise<void> {
    this.#controller?.stream.destroy();
    this.#controller = null;
    const reopen = async (): Promise<void> => {
      await this.#throwIfDead();
      this.#options.log?.debug({ seq: this.#seq }, 'shell reopened');
      await this.open(signal);
    };
    // What ends a fork bomb ends all that is there, a new shell too.
    const isPassing = (error: unknown): boolean =>
      !this.#closed && error instanceof RolloutFailure && error.failureClass === 'sandbox_lost';
    await retry(reopen, { pauseMs: REOPEN_PAUSE_MS, tries: REOPEN_TRIES, isPassing, signal });
  }

  /** A container that no longer runs is either the agent's doing or our loss; both end the rollout's use of it. */
  async #throwIfDead(): Promise<void> {
    const state = await this.#container.state();
    if (state === 'running') return;
    this.#closed = true;
    if (state === 'own_limit') {
      throw new SandboxKilledError('the sandbox was killed by its own limit');
    }
    throw new RolloutFailure(
      'sandbox_lost',
      state === 'gone' ? 'the container is gone' : 'the container stopped',
    );
  }

  /** The kernel's counts as they were read inside; of kills the runtime's, where that is not to be had. */
  async #counters(kills: string | undefined, refused: string | undefined): Promise<Counters> {
    const inside = this.#container.watched ? null : count(kills);
    return {
      oomKills: inside ?? (await this.#container.oomKills()),
      forksRefused: this.#container.watched ? null : count(refused),
    };
  }

  /** What has been killed or refused since the last reply. */
  async #account(controller: Controller, reply: Reply): Promise<{ oom: boolean; forks: boolean }> {
    const { oomKills, forksRefused } = await this.#counters(reply.fields[3], reply.fields[4]);
    const risen = {
      oom: rose(controller.oomKills, oomKills),
      forks: rose(controller.forksRefused, forksRefused),
    };
    controller.oomKills = oomKills ?? controller.oomKills;
    controller.forksRefused = forksRefused ?? controller.forksRefused;
    return risen;
  }

  /** Whether the memory limit killed something of this command, or the pids limit made it fail. */
  async #limited(controller: Controller, reply: Reply, exitCode: number): Promise<boolean> {
    const risen = await this.#account(controller, reply);
    return risen.oom || (exitCode !== 0 && risen.forks);
  }

  #write(stream: Duplex, header: string, body: Buffer): void {
    if (stream.writable) stream.write(Buffer.concat([Buffer.from(header), body]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const controller = this.#controller;
    this.#controller = null;
    controller?.stream.destroy();
  }
}

function output(reply: Reply, keep: number): Pick<CommandResult, 'head' | 'tail' | 'outputBytes'> {
  const { body, fields } = reply;
  const split = count(fields[2]);
  const total = count(fields[1]) ?? body.length;
  if (split !== null)
    return { head: body.subarray(0, split), tail: body.subarray(split), outputBytes: total };
  if (body.length <= 2 * keep) return { head: body, tail: null, outputBytes: body.length };
  return { head: body.subarray(0, keep), tail: body.subarray(-keep), outputBytes: body.length };
}
