/**
 * Asks the first process of a container to run commands, which costs the engine nothing: an exec costs it 80 ms of CPU, and writing
 * files as much. `first.sh` is the other end. What it says of a command is believed only before code runs in the container that may lie.
 */
import type { Duplex } from 'node:stream';
import { newId, RolloutFailure, waitAtMost } from '@swefarm/shared';
import type Docker from 'dockerode';
import { Capture, execResult } from '../capture.ts';
import type { ExecOptions, ExecResult, SandboxFile } from '../runtime.ts';
import { quote } from '../words.ts';
import { inTime } from './deadline.ts';
import { createDemuxer, demuxedDuplex } from './demux.ts';
import { MarkedOutput } from './marked.ts';

const READY = 'swefarm first process\n';
const NEVER_READY = 'swefarm no requests\n';
const SAID_BYTES = 64;
/** An engine on a loaded node has started it long before. */
const READY_MS = 60_000;
const AFTER_KILL_MS = 5_000;
/** For a container to end when its first process has, and for a first process to answer that has nothing else to do. */
const END_MS = 60_000;
/** More is written faster as an archive. */
const MOST_BYTES = 512 * 1024;

/** What a first process is not able to do itself. */
export type OfContainer = {
  /** Ends every process but the first. */
  killOthers(): Promise<void>;
  /** Ends all. */
  kill(): Promise<void>;
  /** Its exit code, once it has ended. Rejects with RolloutFailure when the engine goes away meanwhile. */
  ended(): Promise<number>;
  /** Reads what is gone when it has ended. */
  beforeEnd(): Promise<void>;
};

export class FirstProcess implements Disposable {
  readonly #socket: Duplex;
  readonly #ready: Promise<boolean>;
  readonly #ended: Promise<void>;
  /** Begins each request. Code in the container can write to the input of the first process, and cannot read it from there. */
  readonly #secret = newId() + newId();
  /** What reads its output now; null: nothing is asked. */
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

  /** Before the container starts, so that nothing it says is missed. Null where the engine refuses: there is still the exec. */
  static async attach(container: Docker.Container): Promise<FirstProcess | null> {
    const options = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true };
    const attaching = container.attach(options);
    return inTime(attaching).then(
      (socket) => new FirstProcess(socket as Duplex),
      () => {
        // A stream that arrives too late is destroyed.
        attaching.then((late) => (late as Duplex).destroy()).catch(() => undefined);
        return null;
      },
    );
  }

  async #untilReady(): Promise<boolean> {
    const greeted = new Promise<boolean>((resolve) => {
      let said = '';
      this.#see = (bytes) => {
        said = (said + bytes.toString('latin1')).slice(-SAID_BYTES);
        if (said.endsWith(READY)) resolve(true);
        if (said.endsWith(NEVER_READY)) resolve(false);
      };
      void this.#ended.then(() => resolve(false));
    });
    const ending = await waitAtMost(greeted, READY_MS);
    this.#see = null;
    this.#isFree = ending.by === 'itself' && ending.value;
    if (this.#isFree) this.#socket.write(`${this.#secret}\n`);
    return this.#isFree;
  }

  /** Resolves when it has the secret, or takes no requests: code that runs earlier could read the secret from its input. */
  async hasStarted(): Promise<void> {
    await this.#ready;
  }

  /** True: it does nothing, and takes a request. */
  async #isIdle(): Promise<boolean> {
    return (await this.#ready) && this.#isFree;
  }

  /** Hands its streams over to a command, for as long as that lives; null when it takes no request. */
  async open(argv: readonly string[]): Promise<Duplex | null> {
    if (!(await this.#isIdle())) return null;
    this.#isFree = false;
    const nonce = newId() + newId();
    const duplex = demuxedDuplex(this.#socket, (see, end) => {
      const output = new MarkedOutput(nonce, see);
      this.#see = (bytes) => {
        if (output.push(bytes) !== null) end();
      };
    });
    this.#write('open', nonce, argv);
    return duplex;
  }

  /** Files where nothing is yet. False when it cannot: some of them may be there. */
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
    const answer = this.#ask('put', [String(files.length)], new Capture(0), parts);
    const ending = await waitAtMost(answer, END_MS, signal);
    return ending.by === 'itself' && ending.value === 0;
  }

  /** Null when it cannot run this one. As `exec` of the container, and the exit code is what it says. */
  async run(
    argv: readonly string[],
    options: ExecOptions,
    container: OfContainer,
  ): Promise<ExecResult | null> {
    if (!(await this.#takes(options))) return null;
    const capture = new Capture(options.maxOutputBytes);
    const answer = this.#ask('run', [options.cwd ?? '/', ...argv], capture);
    const ending = await waitAtMost(answer, options.timeoutMs, options.signal);
    if (ending.by !== 'itself') {
      await container.killOthers();
      await waitAtMost(answer, AFTER_KILL_MS);
      options.signal.throwIfAborted();
      return execResult(capture, ending.by, null);
    }
    if (ending.value !== null) return execResult(capture, 'itself', ending.value);
    return execResult(capture, 'itself', await codeOf(container.ended(), options.signal));
  }

  /**
   * As {@link run}, with the exit code that the engine tells when the container has ended with the command. `survived`: the container
   * was there until then.
   */
  async last(
    argv: readonly string[],
    options: ExecOptions,
    container: OfContainer,
  ): Promise<ExecResult | null> {
    if (!(await this.#takes(options))) return null;
    const capture = new Capture(options.maxOutputBytes);
    // Asked before the command begins: an engine that was restarted meanwhile has broken this too, which no code in the container can do.
    const ended = container.ended();
    ended.catch(() => undefined);
    const key = newId() + newId();
    const answer = this.#ask('last', [key, options.cwd ?? '/', ...argv], capture);
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
      // Ends first what the command may have written there, to be taken for a part of this.
      this.#socket.write(`\n${key}\n`);
    }
    const code = survived
      ? await codeAfterAnswer(ended, ending.value ?? 0, options.signal, container)
      : await codeOf(ended, options.signal);
    return { ...execResult(capture, 'itself', code), survived };
  }

  async #takes({ env, stdin, signal }: ExecOptions): Promise<boolean> {
    signal.throwIfAborted();
    return env === undefined && !stdin?.length && (await this.#isIdle());
  }

  /** The code in its answer; null when its output ends without one. */
  #ask(
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
    const text = Buffer.from(words.map((word) => quote(word.replaceAll('\0', ''))).join(' '));
    this.#socket.write(
      Buffer.concat([Buffer.from(`${this.#secret} ${verb} ${nonce} ${text.length}\n`), text, ...more]),
    );
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/**
 * The exit code that the engine reports; the one in the answer when the container has not ended in {@link END_MS}, as on a disk that stalls.
 * Nothing runs there then that could have forged the answer: every process but the first was killed before it.
 */
async function codeAfterAnswer(
  ended: Promise<number>,
  said: number,
  signal: AbortSignal,
  container: OfContainer,
): Promise<number> {
  const ending = await waitAtMost(ended, END_MS, signal);
  signal.throwIfAborted();
  if (ending.by === 'itself') return ending.value;
  await container.kill().catch(() => undefined);
  return said;
}

/** Throws RolloutFailure `sandbox_lost` when the container goes on without an answer of its first process. */
async function codeOf(ended: Promise<number>, signal: AbortSignal): Promise<number> {
  const ending = await waitAtMost(ended, END_MS, signal);
  signal.throwIfAborted();
  if (ending.by === 'itself') return ending.value;
  throw new RolloutFailure(
    'sandbox_lost',
    'the first process of a container said its last, and the container goes on',
  );
}
