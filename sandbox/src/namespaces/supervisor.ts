/** The processes that own a sandbox: a supervisor outside, and process 1 inside. */
import { spawn } from 'node:child_process';
import { close, open } from 'node:fs';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { promisify } from 'node:util';
import { RolloutFailure, waitAtMost } from '@swefarm/shared';
import type { Network } from '../listening/listen.ts';
import { findInit, killQuietly, readNamespace } from './processes.ts';
import { killById } from './records.ts';
import type { Starter } from './starter.ts';

const openFile = promisify(open);
const START_TIMEOUT_MS = 30_000;
const END_TIMEOUT_MS = 10_000;
const KILL_TIMEOUT_MS = 5_000;
const LAST_WORDS_MS = 500;
const KILLED = 137;
const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };

export type SupervisorOptions = {
  root: boolean;
  /**
   * Null: bubblewrap starts process 1, reports it on descriptor 3, and ends it when the supervisor is killed. Otherwise another program
   * (Apptainer) starts process 1. That program outlives a killed supervisor, so its processes are found and killed by this id.
   */
  id: string | null;
  env?: Record<string, string>;
};

type Owner = {
  stdin: Writable | null;
  /** Answers of process 1, and error messages. */
  output: Readable;
  alive(): boolean;
  /** Exit code of process 1, encoded as in a shell; null if a signal ended the supervisor first. */
  exitCode(): number | null;
  ended: Promise<void>;
  kill(): void;
  /** Returns the id of process 1 on the host; null if process 1 has ended. */
  findInit(): Promise<number | null>;
};

/** @param argv runs `start.sh`, which becomes the supervisor. Throws RolloutFailure sandbox_start / node_disk / node_memory. */
export async function startSupervisor(
  starter: Starter,
  argv: readonly string[],
  { id, env, root }: SupervisorOptions,
): Promise<Supervisor> {
  const owner = id === null ? await startOwner(starter, argv) : spawnOwner(argv, id, env);
  const { ended } = owner;
  owner.stdin?.on('error', () => undefined);
  const answers = readAnswers(owner.output);
  const silent = new Promise<void>((resolve) => owner.output.once('close', () => resolve()));
  try {
    const first = await waitAtMost(Promise.race([answers.next(), ended]), START_TIMEOUT_MS);
    const isReady = first.by === 'itself' && first.value === 'ready';
    const init = isReady ? await owner.findInit() : null;
    if (!init) {
      await waitAtMost(silent, LAST_WORDS_MS);
      throw startFailure(answers.rest() || (first.by === 'timeout' ? 'no answer' : 'ended at once'));
    }
    const [files, namespace] = await Promise.all([namespaceFiles(init, root), readNamespace(init, 'pid')]);
    return new Supervisor(owner, answers, { init, namespace: namespace ?? '', files });
  } catch (error) {
    owner.kill();
    await waitAtMost(ended, END_TIMEOUT_MS);
    throw error;
  }
}

async function startOwner(starter: Starter, argv: readonly string[]): Promise<Owner> {
  const started = await starter.start(argv, null, true);
  const init = async (): Promise<number | null> => {
    // bubblewrap wrote the report before process 1 began, but the report comes through another pipe and may arrive later.
    await waitAtMost(started.reported, END_TIMEOUT_MS);
    return started.reportedNumber('child-pid');
  };
  return Object.assign(started, { findInit: init });
}

/** Starts the supervisor as a child: Apptainer outlives the supervisor and has its pipes open, so only the child's exit shows the end. */
function spawnOwner(argv: readonly string[], id: string, env: Record<string, string> = {}): Owner {
  const child = spawn(argv[0] as string, argv.slice(1), {
    stdio: 'pipe',
    env: { ...ENVIRONMENT, ...env },
    cwd: '/',
  });
  const output = new PassThrough();
  for (const stream of [child.stdout, child.stderr]) stream.pipe(output, { end: false });
  child.once('close', () => output.end());
  return {
    stdin: child.stdin,
    output,
    alive: () => child.exitCode === null && child.signalCode === null,
    exitCode: () => child.exitCode,
    ended: new Promise((resolve) => {
      child.once('exit', (_code, signal) => resolve(signal ? killById(id) : undefined));
      child.once('error', () => resolve());
    }),
    kill: () => void child.kill('SIGKILL'),
    findInit: () => findInit(id),
  };
}

/** A started sandbox, whose namespaces stay open until its end. */
export class Supervisor {
  /** Id of process 1 on the host. */
  readonly init: number;
  /** Process namespace of the sandbox, as `pid:[…]`. */
  readonly namespace: string;
  readonly #owner: Owner;
  readonly #answers: Answers;
  readonly #files: ReadonlyMap<string, number>;
  /** Number of users of the namespace files: the sandbox, and the entering processes, which open the files by number. */
  #users = 0;

  constructor(
    owner: Owner,
    answers: Answers,
    opened: { init: number; namespace: string; files: ReadonlyMap<string, number> },
  ) {
    this.#owner = owner;
    this.#answers = answers;
    this.init = opened.init;
    this.namespace = opened.namespace;
    this.#files = opened.files;
    this.retainFiles(owner.ended);
  }

  /** Resolves when the supervisor has ended, and every process inside with it. */
  get ended(): Promise<void> {
    return this.#owner.ended;
  }

  alive(): boolean {
    return this.#owner.alive();
  }

  /** Returns whether process 1 ended by itself: it has an exit code, and no signal ended it or the supervisor. */
  endedByItself(): boolean {
    return !this.alive() && ![null, KILLED].includes(this.#owner.exitCode());
  }

  /**
   * nsenter's options for all namespaces except the process namespace. The options refer to open files, so they stay valid until the
   * sandbox has ended.
   */
  get enter(): string[] {
    const names = [...this.#files.keys()].filter((name) => name !== 'pid');
    return names.map((name) => `--${OPTION[name]}=${this.#file(name)}`);
  }

  /** Returns the network of the sandbox, which the caller disposes; `shared`: the network of this process. */
  async network(): Promise<Network | 'shared'> {
    const released = Promise.withResolvers<void>();
    this.retainFiles(released.promise);
    if ((await readNamespace(this.init, 'net')) === (await readNamespace(process.pid, 'net'))) {
      released.resolve();
      return 'shared';
    }
    const names = ['user', 'net'].filter((name) => this.#files.has(name));
    return {
      enter: [
        ...names.map((name) => `--${name}=${this.#file(name)}`),
        ...(names.includes('user') ? ['--preserve-credentials'] : []),
      ],
      [Symbol.dispose]: released.resolve,
    };
  }

  get pidNamespaceFile(): string {
    return this.#file('pid');
  }

  #file(name: string): string {
    return `/proc/${process.pid}/fd/${this.#files.get(name)}`;
  }

  /**
   * Leaves the namespace files open after the end of the sandbox, until `entering` resolves or rejects. An entering process opens them
   * by number, and a reused number could denote another sandbox's file.
   */
  retainFiles(entering: Promise<unknown>): void {
    this.#users++;
    const release = (): void => {
      if (--this.#users === 0) for (const fd of this.#files.values()) close(fd);
    };
    entering.then(release, release);
  }

  /** Kills every process inside except process 1. Rejects if process 1 does not answer. */
  async killAll(): Promise<void> {
    const answer = this.#answers.next();
    this.#owner.stdin?.write('kill\n');
    const ending = await waitAtMost(Promise.race([answer, this.#owner.ended]), KILL_TIMEOUT_MS);
    if (ending.by !== 'itself') throw new Error('process 1 of the sandbox does not answer');
  }

  /** The death of process 1 ends every process inside; the supervisor exits after the last one. */
  async end(): Promise<void> {
    if (this.alive()) killQuietly(this.init);
    const ending = await waitAtMost(this.#owner.ended, END_TIMEOUT_MS);
    if (ending.by !== 'itself') this.#owner.kill();
  }
}

const OPTION: Record<string, string> = {
  mnt: 'mount',
  pid: 'pid',
  net: 'net',
  ipc: 'ipc',
  uts: 'uts',
  cgroup: 'cgroup',
  user: 'user',
};

async function namespaceFiles(init: number, root: boolean): Promise<Map<string, number>> {
  const wanted = Object.keys(OPTION).filter((name) => name !== 'user' || !root);
  const files = new Map<string, number>();
  try {
    for (const name of wanted) files.set(name, await openFile(`/proc/${init}/ns/${name}`, 'r'));
  } catch (error) {
    for (const fd of files.values()) close(fd);
    throw new RolloutFailure('sandbox_start', 'the sandbox ended while it was being started', {
      cause: error,
    });
  }
  return files;
}

function startFailure(stderr: string): RolloutFailure {
  const message = `the sandbox did not start: ${stderr.trim()}`.slice(0, 400);
  if (/no space left|disk quota/i.test(stderr)) return new RolloutFailure('node_disk', message);
  if (/cannot allocate memory|out of memory/i.test(stderr)) return new RolloutFailure('node_memory', message);
  return new RolloutFailure('sandbox_start', message);
}

type Answers = {
  next(): Promise<string>;
  /** Last lines that are no answers, also an incomplete one: error messages. */
  rest(): string;
};

export function readAnswers(stream: Readable): Answers {
  // node:readline would hide a last line without a line feed until the stream ends.
  let line = '';
  let rest = '';
  const waiting: ((answer: string) => void)[] = [];
  stream.setEncoding('utf8');
  stream.on('error', () => undefined);
  stream.on('data', (chunk: string) => {
    const lines = (line + chunk).split('\n');
    line = lines.pop() ?? '';
    for (const one of lines) {
      if (one === 'ready' || one === 'done') waiting.shift()?.(one);
      else rest = `${rest}${one}\n`.slice(-4096);
    }
  });
  return { next: () => new Promise((resolve) => waiting.push(resolve)), rest: () => rest + line };
}
