/**
 * Asks the first process of a container (`first.sh`) to run commands and write files, because an exec or an archive of the engine costs
 * 80 ms of CPU. An answer is trusted only before untrusted code runs in the container; {@link codeOf} has the only exception.
 */
import type { Duplex } from 'node:stream';
import { newId, RolloutFailure, shellQuoted, waitAtMost } from '@swefarm/shared';
import type Docker from 'dockerode';
import { Capture, execResult } from '../capture.ts';
import { joinedStream } from '../joinedstream.ts';
import type { ExecOptions, ExecResult, SandboxFile } from '../runtime.ts';
import { inTime } from './deadline.ts';
import { createDemuxer } from './demux.ts';
import { MarkedOutput } from './marked.ts';

const READY = 'swefarm first process\n';
const NEVER_READY = 'swefarm no requests\n';
const GREETING_BYTES = 64;
const READY_MS = 60_000;
const AFTER_KILL_MS = 5_000;
/**
 * Maximum time for a container to end after its first process has answered or closed its output, and for an idle first process to
 * answer a request.
 */
const END_MS = 60_000;
const MOST_BYTES = 512 * 1024;

/** Operations of the container that {@link FirstProcess} needs. */
export type OfContainer = {
  killProcesses(): Promise<void>;
  kill(): Promise<void>;
  /** Resolves with the exit code when the container ends. Rejects with RolloutFailure if the engine becomes unreachable. */
  ended(): Promise<number>;
  /** Reads counters that disappear with the container. */
  beforeEnd(): Promise<void>;
};

export class FirstProcess implements Disposable {
  readonly #socket: Duplex;
  readonly #ready: Promise<boolean>;
  readonly #ended: Promise<void>;
  /** First word of each request. Code in the container can write to the input of the first process, but cannot read the input. */
  readonly #secret = newId() + newId();
  /** Receives the output of the first process; null: no request is open. */
  #see: ((bytes: Buffer) => void) | null = null;
  #isFree = false;

  private constructor(socket: Duplex) {
    this.#socket = socket;
    this.#ended = new Promise((resolve) => {
      for (const event of ['end', 'close', 'error']) socket.once(event, () => resolve());
    });
    void this.#ended.then(() => {
      this.#isFree = false;
    });
    this.#ready = this.#untilReady();
    socket.on(
      'data',
      createDemuxer((bytes) => this.#see?.(bytes)),
    );
  }

  /** Attaches to a container before its start, so that no output is lost. Returns null if that fails; execs still work. */
  static async attach(container: Docker.Container): Promise<FirstProcess | null> {
    const options = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true };
    const attaching = container.attach(options);
    return inTime(attaching).then(
      (socket) => new FirstProcess(socket as Duplex),
      () => {
        attaching.then((late) => (late as Duplex).destroy()).catch(() => undefined);
        return null;
      },
    );
  }

  async #untilReady(): Promise<boolean> {
    const greeted = new Promise<boolean>((resolve) => {
      let greeting = '';
      this.#see = (bytes) => {
        greeting = (greeting + bytes.toString('latin1')).slice(-GREETING_BYTES);
        if (greeting.endsWith(READY)) resolve(true);
        if (greeting.endsWith(NEVER_READY)) resolve(false);
      };
      void this.#ended.then(() => resolve(false));
    });
    const ending = await waitAtMost(greeted, READY_MS);
    this.#see = null;
    this.#isFree = ending.by === 'itself' && ending.value;
    if (this.#isFree) this.#socket.write(`${this.#secret}\n`);
    return this.#isFree;
  }

  /** Resolves when the first process has the secret, or accepts no requests. Code that runs earlier could read the secret. */
  async hasStarted(): Promise<void> {
    await this.#ready;
  }

  async #isIdle(): Promise<boolean> {
    return (await this.#ready) && this.#isFree;
  }

  /** Starts a command with the streams of the first process; null if the first process accepts no request. */
  async open(argv: readonly string[]): Promise<Duplex | null> {
    if (!(await this.#isIdle())) return null;
    this.#isFree = false;
    const nonce = newId() + newId();
    const duplex = joinedStream(this.#socket, this.#socket, (see, end) => {
      const output = new MarkedOutput(nonce, see);
      this.#see = (bytes) => {
        if (output.push(bytes) !== null) end();
      };
    });
    this.#write('open', nonce, argv);
    return duplex;
  }

  /** Writes files to unused paths. Returns false on failure; some of the files may then exist. */
  async putFiles(files: readonly SandboxFile[], signal: AbortSignal): Promise<boolean> {
    const contents = files.map(({ content }) => Buffer.from(content));
    const isFit = (content: Buffer, at: number): boolean =>
      !content.includes(0) && /^\/[^\n\0]*[^/\n\0]$/.test(files[at]?.path ?? '');
    const bytes = contents.reduce((sum, { length }) => sum + length, 0);
    if (bytes > MOST_BYTES || !contents.every(isFit) || !(await this.#isIdle())) return false;
    const parts = files.flatMap(({ path, mode = 0o644 }, at) => [
      Buffer.from(`${contents[at]?.length} ${mode.toString(8)} ${path}\n`),
      contents[at] ?? Buffer.alloc(0),
    ]);
    const answer = this.#request('put', [String(files.length)], new Capture(0), parts);
    const ending = await waitAtMost(answer, END_MS, signal);
    return ending.by === 'itself' && ending.value === 0;
  }

  /** Runs a command; null if the first process cannot run it. The exit code is the answer of the first process. */
  async run(
    argv: readonly string[],
    options: ExecOptions,
    container: OfContainer,
  ): Promise<ExecResult | null> {
    if (!(await this.#takes(options))) return null;
    const capture = new Capture(options.maxOutputBytes);
    const answer = this.#request('run', [options.cwd ?? '/', ...argv], capture);
    const ending = await waitAtMost(answer, options.timeoutMs, options.signal);
    if (ending.by !== 'itself') {
      await container.killProcesses();
      await waitAtMost(answer, AFTER_KILL_MS);
      options.signal.throwIfAborted();
      return execResult(capture, ending.by, null);
    }
    if (ending.value !== null) return execResult(capture, 'itself', ending.value);
    return execResult(capture, 'itself', await codeOf(container.ended(), options.signal));
  }

  /**
   * Runs the last command of a container: the container ends with the command, and the engine reports the exit code. `survived`: the
   * container ran until the command had ended by itself. Returns null if the first process cannot run the command.
   */
  async last(
    argv: readonly string[],
    options: ExecOptions,
    container: OfContainer,
  ): Promise<ExecResult | null> {
    if (!(await this.#takes(options))) return null;
    const capture = new Capture(options.maxOutputBytes);
    // This wait begins before the command: a restart of the engine breaks the wait, but code in the container cannot.
    const ended = container.ended();
    ended.catch(() => undefined);
    const key = newId() + newId();
    const answer = this.#request('last', [key, options.cwd ?? '/', ...argv], capture);
    const ending = await waitAtMost(answer, options.timeoutMs, options.signal);
    this.#isFree = false;
    if (ending.by !== 'itself') {
      await container.beforeEnd();
      await container.kill();
      await waitAtMost(this.#ended, AFTER_KILL_MS);
      options.signal.throwIfAborted();
      return execResult(capture, ending.by, null);
    }
    const survived = ending.value !== null;
    if (survived) {
      await container.beforeEnd();
      // The line feed ends a line that the command may have begun in this input.
      this.#socket.write(`\n${key}\n`);
    }
    const code = await codeOf(ended, options.signal, ending.value);
    if (code === null) await container.kill().catch(() => undefined);
    return { ...execResult(capture, 'itself', code ?? ending.value), survived };
  }

  async #takes({ env, stdin, signal }: ExecOptions): Promise<boolean> {
    signal.throwIfAborted();
    return env === undefined && !stdin?.length && (await this.#isIdle());
  }

  /** Sends a request. Returns the exit code of the answer; null if the output ends without an answer. */
  #request(
    verb: string,
    words: readonly string[],
    capture: Capture,
    more: readonly Buffer[] = [],
  ): Promise<number | null> {
    this.#isFree = false;
    const nonce = newId() + newId();
    const output = new MarkedOutput(nonce, (bytes) => capture.push(bytes));
    return new Promise((resolve) => {
      this.#see = (bytes) => {
        const code = output.push(bytes);
        if (code === null) return;
        this.#see = null;
        this.#isFree = true;
        resolve(code);
      };
      void this.#ended.then(() => {
        output.end();
        resolve(null);
      });
      this.#write(verb, nonce, words, more);
    });
  }

  #write(verb: string, nonce: string, words: readonly string[], more: readonly Buffer[] = []): void {
    const text = Buffer.from(words.map((word) => shellQuoted(word.replaceAll('\0', ''))).join(' '));
    this.#socket.write(
      Buffer.concat([Buffer.from(`${this.#secret} ${verb} ${nonce} ${text.length}\n`), text, ...more]),
    );
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/**
 * Returns the engine's exit code; null if the container has not ended in {@link END_MS} after an answer, as on a disk that stalls. The
 * answer then counts, because no code could have forged it: every process except the first was killed before it. Throws RolloutFailure
 * `sandbox_lost` if the container still runs after the output of its first process ended without an answer.
 */
async function codeOf(
  ended: Promise<number>,
  signal: AbortSignal,
  answered: number | null = null,
): Promise<number | null> {
  const ending = await waitAtMost(ended, END_MS, signal);
  signal.throwIfAborted();
  if (ending.by === 'itself') return ending.value;
  if (answered !== null) return null;
  throw new RolloutFailure(
    'sandbox_lost',
    'the output of the first process ended, and its container still runs',
  );
}
