/** The worker's side of the shell protocol. The other side is a bash in the container, which runs controller.sh. */
import { readFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { newId } from '@swefarm/shared';
import { type Reply, ReplyReader } from './reply.ts';
import type { Container } from './runtime.ts';

/** The subshell evaluates the command on line 1, because bash's error messages contain the line number. */
const MAIN =
  'eval "$1"; while __sf_next; do ( __sf_enter; eval "$__sf_text" ) </dev/null >&5 2>&5 4>&- 5>&- 6<&- 7>&- 9>&- & __sf_finish $!; done';
const CONTROLLER = readFileSync(new URL('./controller.sh', import.meta.url), 'utf8');
/** Bytes in pipes, by which a reply can exceed the stored bytes. */
const PIPE_BYTES = 131_072;
const INIT_REPLY_BYTES = 65_536;

export type ControllerOptions = {
  activate: string;
  /** Name of the folder for the controller's files. All controllers of a shell use the same folder, so that output can be recovered. */
  scratch: string;
  /** A command line that runs once, in parallel with the activation; empty: none. */
  preparation: readonly string[];
};

type Counters = { oomKills: number | null; forksRefused: number | null };

/** Parses a whole number in a reply; null for anything else. A command can forge a reply, and a long number would become Infinity. */
export const parseCount = (word: string | undefined): number | null =>
  word && /^\d{1,15}$/.test(word) ? Number(word) : null;
export const hasRisen = (before: number | null, after: number | null): boolean =>
  before !== null && after !== null && after > before;

export class Controller {
  readonly nonce: string;
  readonly #container: Container;
  readonly #stream: Duplex;
  readonly #reader: ReplyReader;
  #pid = 0;
  #watcher = 0;
  #counters: Counters = { oomKills: null, forksRefused: null };

  private constructor(container: Container, stream: Duplex, nonce: string) {
    this.nonce = nonce;
    this.#container = container;
    this.#stream = stream;
    this.#reader = new ReplyReader(stream, nonce);
  }

  /** Starts bash. Throws errors of the container's `open`. */
  static async start(
    container: Container,
    { activate, scratch, preparation }: ControllerOptions,
    signal: AbortSignal,
  ): Promise<Controller> {
    const nonce = newId() + newId();
    const bash = ['bash', '--noprofile', '--norc', '-c', MAIN, 'bash', CONTROLLER];
    const line = [...bash, nonce, scratch, container.workdir, ...preparation];
    const stream = await container.open(line, signal);
    const controller = new Controller(container, stream, nonce);
    const init = Buffer.from(`${activate}\n`.replaceAll('\0', ''));
    controller.#write(`init 0 ${init.length} 0\n`, init);
    return controller;
  }

  /** Process ids inside the container: of bash, and of the process that stores the output of commands. */
  get pids(): readonly [pid: number, watcher: number] {
    return [this.#pid, this.#watcher];
  }

  get isLost(): boolean {
    return this.#reader.lost;
  }

  get oomKills(): number | null {
    return this.#counters.oomKills;
  }

  /** Resolves with the result of the preparation when bash accepts commands. Rejects with ShellLostError. */
  async ready(): Promise<{ exitCode: number; output: Buffer }> {
    const { fields, body } = await this.#reader.next(0, INIT_REPLY_BYTES);
    const [pid, watcher, , oomKills, forksRefused, exitCode] = fields;
    this.#pid = Number(pid);
    this.#watcher = Number(watcher);
    this.#counters = await this.#readCounters(oomKills, forksRefused);
    return { exitCode: parseCount(exitCode) ?? 0, output: body };
  }

  /**
   * `run` runs the text as a command, `recover` returns the output of command `seq` of a lost controller. Rejects with ShellLostError.
   * @param endBytes maximum size of the output's head, and of the output's tail
   */
  request(verb: 'run' | 'recover', seq: number, endBytes: number, text = Buffer.alloc(0)): Promise<Reply> {
    const reply = this.#reader.next(seq, 2 * endBytes + PIPE_BYTES);
    this.#write(`${verb} ${seq} ${text.length} ${endBytes}\n`, text);
    return reply;
  }

  /** Returns whether the memory limit killed processes (`oom`) and the pids limit refused forks (`forks`) since the previous reply. */
  async account(reply: Reply): Promise<{ oom: boolean; forks: boolean }> {
    const before = this.#counters;
    const now = await this.#readCounters(reply.fields[3], reply.fields[4]);
    this.#counters = {
      oomKills: now.oomKills ?? before.oomKills,
      forksRefused: now.forksRefused ?? before.forksRefused,
    };
    return {
      oom: hasRisen(before.oomKills, now.oomKills),
      forks: hasRisen(before.forksRefused, now.forksRefused),
    };
  }

  close(): void {
    this.#stream.destroy();
  }

  /** Reads the counters from the reply. If the container cannot count its kills for memory, the runtime counts them. */
  async #readCounters(kills: string | undefined, refused: string | undefined): Promise<Counters> {
    const { watched } = this.#container;
    const inside = watched ? null : parseCount(kills);
    return {
      oomKills: inside ?? (await this.#container.oomKills()),
      forksRefused: watched ? null : parseCount(refused),
    };
  }

  #write(header: string, body: Buffer): void {
    if (this.#stream.writable) this.#stream.write(Buffer.concat([Buffer.from(header), body]));
  }
}
