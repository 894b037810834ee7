/** The processes that own a sandbox: a supervisor outside, and process 1 inside. */
import { spawn } from 'node:child_process';
import { close, open } from 'node:fs';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { promisify } from 'node:util';
import { poll, RolloutFailure, waitAtMost } from '@swefarm/shared';
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

export type Supervisor = {
  /** Id of process 1 on the host. */
  init: number;
  /** Process namespace of the sandbox, as `pid:[…]`. */
  namespace: string;
  alive(): boolean;
  /** Whether process 1 ended by itself: it has an exit code, and no signal ended it or the supervisor. */
  endedByItself(): boolean;
  /**
   * nsenter's options for all namespaces except the process namespace. The options refer to open files, so they stay valid until the
   * sandbox has ended.
   */
  enter: string[];
  pidNamespaceFile: string;
  /**
   * Leaves the namespace files open after the end of the sandbox, until the handle is disposed of. An entering process opens them by
   * number, and a reused number could denote another sandbox's file.
   */
  retainFiles(): Disposable;
  /** Kills every process inside except process 1. Rejects if process 1 does not answer. */
  killAll(): Promise<void>;
  ended: Promise<void>;
  end(): Promise<void>;
};

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
  stdin: Writable;
  /** Answers of process 1, and error messages. */
  output: Readable;
  /** bubblewrap's report so far; null when another program starts process 1. */
  reported: (() => string) | null;
  alive(): boolean;
  /** Exit code of process 1, encoded as in a shell; null if a signal ended the supervisor first. */
  exitCode(): number | null;
  ended: Promise<void>;
  kill(): void;
};

/** @param argv runs `start.sh`, which becomes the supervisor. Throws RolloutFailure sandbox_start / node_disk / node_memory. */
export async function startSupervisor(
  starter: Starter,
  argv: readonly string[],
  options: SupervisorOptions,
): Promise<Supervisor> {
  const owner =
    options.id === null ? await startOwner(starter, argv) : spawnOwner(argv, options.id, options.env);
  const { ended } = owner;
  owner.stdin.on('error', () => undefined);
  const answers = readAnswers(owner.output);
  const silent = new Promise<void>((resolve) => owner.output.once('close', () => resolve()));
  try {
    const first = await waitAtMost(Promise.race([answers.next(), ended]), START_TIMEOUT_MS);
    const isReady = first.by === 'itself' && first.value === 'ready';
    const init = isReady ? await initOf(owner, options) : null;
    if (!init) {
      await waitAtMost(silent, LAST_WORDS_MS);
      throw startFailure(answers.rest() || (first.by === 'timeout' ? 'no answer' : 'ended at once'));
    }
    return await openSupervisor(owner, init, answers, options.root);
  } catch (error) {
    owner.kill();
    await waitAtMost(ended, END_TIMEOUT_MS);
    throw error;
  }
}

async function initOf({ reported }: Owner, { id }: SupervisorOptions): Promise<number | null> {
  if (id !== null) return await findInit(id);
  // bubblewrap wrote the report before process 1 began, but the report comes through another pipe and may arrive later.
  const look = (): number | null => Number(/"child-pid": (\d+)/.exec(reported?.() ?? '')?.[1] ?? 0) || null;
  return (await poll(async () => look(), { pauseMs: 2, withinMs: END_TIMEOUT_MS })) ?? null;
}

async function startOwner(starter: Starter, argv: readonly string[]): Promise<Owner> {
  const started = await starter.start(argv, null, true);
  let alive = true;
  const ended = started.ended.then(() => {
    alive = false;
  });
  return {
    stdin: started.stdin as Writable,
    output: started.output,
    reported: () => started.reportText(),
    alive: () => alive,
    exitCode: () => {
      const code = /"exit-code": (\d+)/.exec(started.reportText())?.[1];
      return code === undefined ? null : Number(code);
    },
    ended,
    kill: () => started.kill(),
  };
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
    reported: null,
    alive: () => child.exitCode === null && child.signalCode === null,
    exitCode: () => child.exitCode,
    ended: new Promise((resolve) => {
      child.once('exit', (_code, signal) => resolve(signal ? killById(id) : undefined));
      child.once('error', () => resolve());
    }),
    kill: () => void child.kill('SIGKILL'),
  };
}

/** Opens the namespaces of a started sandbox until its end. */
async function openSupervisor(
  owner: Owner,
  init: number,
  answers: Answers,
  root: boolean,
): Promise<Supervisor> {
  const { ended } = owner;
  const [files, namespace] = await Promise.all([namespaceFiles(init, root), readNamespace(init, 'pid')]);
  const retain = closeAfter(ended, () => {
    for (const fd of files.values()) close(fd);
  });
  const file = (name: string): string => `/proc/${process.pid}/fd/${files.get(name)}`;
  return {
    init,
    namespace: namespace ?? '',
    alive: owner.alive,
    endedByItself: () => !owner.alive() && ![null, KILLED].includes(owner.exitCode()),
    enter: [...files.keys()]
      .filter((name) => name !== 'pid')
      .map((name) => `--${OPTION[name]}=${file(name)}`),
    pidNamespaceFile: file('pid'),
    retainFiles: retain,
    async killAll() {
      const answer = answers.next();
      owner.stdin.write('kill\n');
      const ending = await waitAtMost(Promise.race([answer, ended]), KILL_TIMEOUT_MS);
      if (ending.by !== 'itself') throw new Error('process 1 of the sandbox does not answer');
    },
    ended,
    end: () => end(owner, init),
  };
}

/** Calls `close` once, after `ended` and after the disposal of all handles. Returns a function that makes a handle. */
function closeAfter(ended: Promise<void>, close: () => void): () => Disposable {
  let handles = 0;
  const add = (): Disposable => {
    let isOpen = true;
    handles++;
    return {
      [Symbol.dispose]() {
        if (isOpen && --handles === 0) close();
        isOpen = false;
      },
    };
  };
  const first = add();
  void ended.then(() => first[Symbol.dispose]());
  return add;
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

/** The death of process 1 ends every process inside; the supervisor exits after the last one. */
async function end(owner: Owner, init: number): Promise<void> {
  if (owner.alive()) killQuietly(init);
  const ending = await waitAtMost(owner.ended, END_TIMEOUT_MS);
  if (ending.by !== 'itself') owner.kill();
}

function startFailure(stderr: string): RolloutFailure {
  const message = `the sandbox did not start: ${stderr.trim()}`.slice(0, 400);
  if (/no space left|disk quota/i.test(stderr)) return new RolloutFailure('node_disk', message);
  if (/cannot allocate memory|out of memory/i.test(stderr)) return new RolloutFailure('node_memory', message);
  return new RolloutFailure('sandbox_start', message);
}

type Answers = {
  next(): Promise<string>;
  /** Last lines that are no answers: error messages. */
  rest(): string;
};

function readAnswers(stream: Readable): Answers {
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
