/** The processes that own a sandbox: a supervisor outside and process 1 inside. Starts them, opens their namespaces, ends them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { close, open } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { RolloutFailure, waitAtMost } from '@swefarm/shared';
import { findInit, killQuietly, readNamespace } from './processes.ts';
import { killById } from './records.ts';

const openFile = promisify(open);
const START_TIMEOUT_MS = 30_000;
const END_TIMEOUT_MS = 10_000;
const KILL_TIMEOUT_MS = 5_000;
const LAST_WORDS_MS = 500;
const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };

export type Supervisor = {
  /** Process 1 by its id on the host. */
  init: number;
  /** `pid:[…]` of the sandbox. */
  namespace: string;
  alive(): boolean;
  /** nsenter's options for all namespaces except the process one. They stay valid when process ids are reused, until it has ended. */
  enter: string[];
  pidNamespaceFile: string;
  /**
   * Keeps these files open past the end of the sandbox: who is entering it opens them later, by numbers that would by then be
   * another sandbox's.
   */
  hold(): Disposable;
  /** Kills everything inside but process 1. Rejects when it does not answer. */
  killAll(): Promise<void>;
  /** Resolves when every process inside is dead. */
  ended: Promise<void>;
  end(): Promise<void>;
};

/** How process 1 is found: by bubblewrap's report on file 3, or, when another program starts it, by the sandbox's id. */
export type SupervisorOptions = {
  root: boolean;
  /**
   * Finds process 1 by this id; the program that starts it then also mounts its tree, and outlives a supervisor that is killed:
   * what is left is killed by this id too. Null: bubblewrap reports process 1, and ends it when it is killed.
   */
  id: string | null;
  env?: Record<string, string>;
};

/** @param argv starts `start.sh` and through it the supervisor. Throws RolloutFailure sandbox_start / node_disk / node_memory. */
export async function startSupervisor(
  argv: readonly string[],
  options: SupervisorOptions,
): Promise<Supervisor> {
  const reported = options.id === null;
  const child = spawn(argv[0] as string, argv.slice(1), {
    stdio: ['pipe', 'pipe', 'pipe', reported ? 'pipe' : 'ignore'],
    env: { ...ENVIRONMENT, ...options.env },
    cwd: '/',
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', (_code, signal) => resolve(signal && options.id ? killById(options.id) : undefined));
    child.once('error', () => resolve());
  });
  const silent = new Promise<void>((resolve) => child.once('close', () => resolve()));
  // A write to a sandbox that has just ended fails, which does not matter.
  child.stdin?.on('error', () => undefined);
  const lines = lineReader(child.stdout as Readable);
  const stderr = collectText(child.stderr as Readable);
  const status = reported ? lineReader(child.stdio[3] as Readable) : null;
  try {
    const started = Promise.all([status?.next() ?? '', lines.next()]);
    const first = await waitAtMost(Promise.race([started, ended]), START_TIMEOUT_MS);
    const reports = first.by === 'itself' ? first.value : undefined;
    const init =
      options.id === null
        ? Number(/"child-pid": (\d+)/.exec(reports?.[0] ?? '')?.[1])
        : reports && (await findInit(options.id));
    if (reports?.[1] !== 'ready' || !init) {
      await waitAtMost(silent, LAST_WORDS_MS);
      throw startFailure(stderr() || (first.by === 'timeout' ? 'no answer' : 'ended at once'));
    }
    return await openSupervisor({ child, init, ended, lines }, reported, options.root);
  } catch (error) {
    child.kill('SIGKILL');
    await waitAtMost(ended, END_TIMEOUT_MS);
    throw error;
  }
}

type Started = { child: ChildProcess; init: number; ended: Promise<void>; lines: LineReader };

/** Opens the namespaces of a started sandbox for as long as it runs. @param hasMounts the supervisor mounted the tree, not process 1 */
async function openSupervisor(
  { child, init, ended, lines }: Started,
  hasMounts: boolean,
  root: boolean,
): Promise<Supervisor> {
  const [files, namespace] = await Promise.all([
    namespaceFiles(hasMounts ? (child.pid as number) : init, init, root),
    readNamespace(init, 'pid'),
  ]);
  const held = holdUntil(ended, () => {
    for (const fd of files.values()) close(fd);
  });
  const file = (name: string): string => `/proc/${process.pid}/fd/${files.get(name)}`;
  return {
    init,
    namespace: namespace ?? '',
    alive: () => child.exitCode === null && child.signalCode === null,
    enter: [...files.keys()]
      .filter((name) => name !== 'pid')
      .map((name) => `--${OPTION[name]}=${file(name)}`),
    pidNamespaceFile: file('pid'),
    hold: held,
    async killAll() {
      const answer = lines.next();
      (child.stdin as Writable).write('kill\n');
      const ending = await waitAtMost(Promise.race([answer, ended]), KILL_TIMEOUT_MS);
      if (ending.by !== 'itself') throw new Error('process 1 of the sandbox does not answer');
    },
    ended,
    end: () => end(child, init, ended),
  };
}

/** Calls `close` once, when it has ended and nobody holds any more. */
function holdUntil(ended: Promise<void>, close: () => void): () => Disposable {
  let holders = 0;
  const add = (): Disposable => {
    let holds = true;
    holders++;
    return {
      [Symbol.dispose]() {
        if (holds && --holders === 0) close();
        holds = false;
      },
    };
  };
  const first = add();
  void ended.then(() => first[Symbol.dispose]());
  return add;
}

const OPTION: Record<string, string> = {
  mnt: 'mount',
  net: 'net',
  ipc: 'ipc',
  uts: 'uts',
  cgroup: 'cgroup',
  user: 'user',
};

/** bubblewrap's supervisor has the mounts (the host's tree and the sandbox's in their own namespace), process 1 has the other namespaces. */
async function namespaceFiles(mounts: number, init: number, root: boolean): Promise<Map<string, number>> {
  const wanted: [string, number][] = [
    ['mnt', mounts],
    ['pid', init],
    ['net', init],
    ['ipc', init],
    ['uts', init],
    ['cgroup', init],
  ];
  if (!root) wanted.push(['user', init]);
  const files = new Map<string, number>();
  try {
    for (const [name, pid] of wanted) files.set(name, await openFile(`/proc/${pid}/ns/${name}`, 'r'));
  } catch (error) {
    for (const fd of files.values()) close(fd);
    throw new RolloutFailure('sandbox_start', 'the sandbox ended while it was being started', {
      cause: error,
    });
  }
  return files;
}

/** The death of process 1 ends every process inside; the supervisor exits after the last. */
async function end(child: ChildProcess, init: number, ended: Promise<void>): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) killQuietly(init);
  const ending = await waitAtMost(ended, END_TIMEOUT_MS);
  if (ending.by !== 'itself') child.kill('SIGKILL');
}

function startFailure(stderr: string): RolloutFailure {
  const message = `the sandbox did not start: ${stderr.trim()}`.slice(0, 400);
  if (/no space left|disk quota/i.test(stderr)) return new RolloutFailure('node_disk', message);
  if (/cannot allocate memory|out of memory/i.test(stderr)) return new RolloutFailure('node_memory', message);
  return new RolloutFailure('sandbox_start', message);
}

function collectText(stream: Readable): () => string {
  let text = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    text = (text + chunk).slice(-4096);
  });
  stream.on('error', () => undefined);
  return () => text;
}

type LineReader = { next(): Promise<string> };

function lineReader(stream: Readable): LineReader {
  let rest = '';
  const waiting: ((line: string) => void)[] = [];
  stream.setEncoding('utf8');
  stream.on('error', () => undefined);
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) waiting.shift()?.(line);
  });
  return { next: () => new Promise((resolve) => waiting.push(resolve)) };
}
