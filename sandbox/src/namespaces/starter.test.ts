/**
 * The starter's processes: their streams, signals and scores, the effect of the starter's death, and processes that are killed before
 * their start, or that the machine cannot start.
 */
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { poll } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inheritedFiles } from './host.ts';
import { openPipes, type Pipes } from './pipes.ts';
import { hostShell, openStarter, type Starter } from './starter.ts';

const folder = temporaryFolder('starter');
let pipes: Pipes;
let starter: Starter;

beforeAll(async () => {
  pipes = await openPipes(join(folder, 'pipes'));
  starter = await openStarter(hostShell('/bin/bash', await inheritedFiles()), join(folder, 'starter'), pipes);
});
afterAll(async () => {
  await starter[Symbol.asyncDispose]();
  await pipes[Symbol.asyncDispose]();
});

const printed = async (argv: readonly string[]): Promise<string> =>
  text((await starter.start(argv, null, false)).output);

test('arguments arrive byte for byte', async () => {
  const odd = [...Array(0x17f).keys()]
    .slice(1)
    .map((code) => String.fromCodePoint(code))
    .join('');
  expect(await printed(['printf', '%s', odd])).toBe(odd);
  expect(await printed(['printf', '[%s]', '', "'", '$(id)', '*', ''])).toBe("[]['][$(id)][*][]");
});

test('streams can be reopened, stdin ends with its writer, and no other file is inherited', async () => {
  const script = 'cat; echo to >/dev/stdout; echo err >/dev/stderr; ls /proc/$$/fd';
  const started = await starter.start(['sh', '-c', script], null, true);
  started.stdin?.end('from stdin\n');
  expect((await text(started.output)).split('\n').join(' ')).toBe('from stdin to err 0 1 2 3 ');
  await started.ended;
  expect(readdirSync(join(folder, 'starter'))).toEqual([]);
});

test('a process can be interrupted and has its own group', async () => {
  const line =
    'import os, signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, os.getpgid(0) == os.getpid())';
  expect(await printed(['python3', '-c', line])).toBe('True True\n');
});

/** This process's open files in the folder of the test. */
const openFiles = (): string[] =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder);
    } catch {
      return false;
    }
  });

test('an ended process leaves no file open here, even without an end of its stdin', async () => {
  const before = openFiles().length;
  const started = await starter.start(['true'], null, true);
  started.output.resume();
  await started.ended;
  const areClosed = (): boolean => openFiles().length <= before;
  expect(await poll(areClosed, { pauseMs: 20, withinMs: 60_000 })).toBe(true);
});

test('a program that cannot be executed prints an error and ends', async () => {
  const started = await starter.start(['/does/not/exist'], null, false);
  expect(await text(started.output)).toMatch(/No such file/);
  await started.ended;
});

test('kill ends a running process and ignores an ended one', async () => {
  const started = await starter.start(['sleep', '600'], null, false);
  await started.running;
  started.kill();
  await started.ended;
  started.kill();
});

test('a killed starter is opened again, and its unstarted processes count as ended', async () => {
  const shell = Number(await printed(['sh', '-c', 'echo $PPID']));
  process.kill(shell, 'SIGSTOP');
  const waiting = await starter.start(['true'], null, false);
  process.kill(shell, 'SIGKILL');
  await waiting.ended;
  expect(waiting.reportText()).toBe('');
  const again = async (): Promise<boolean> => (await printed(['echo', 'again'])) === 'again\n';
  expect(await poll(again, { pauseMs: 20, withinMs: 60_000 })).toBe(true);
});

const OWN = Number(readFileSync('/proc/self/oom_score_adj', 'utf8'));

/** The score of a process in a sandbox of a worker with this score. */
const scoreFrom = async (score: number): Promise<number> => {
  const adjusted = `echo ${score} >/proc/self/oom_score_adj; exec bash --noprofile --norc -c "$0" "$@"`;
  const own = await openStarter(
    (script) => ['sh', '-c', adjusted, script, 'swefarm'],
    join(folder, `starter-${score}`),
    pipes,
  );
  try {
    const entry = { joins: [], pidNamespaceFile: '/dev/null', filter: '/dev/null', nproc: null };
    return Number(await text((await own.start(['cat', '/proc/self/oom_score_adj'], entry, false)).output));
  } finally {
    await own[Symbol.asyncDispose]();
  }
};

// The out-of-memory killer chooses a sandbox's process before the worker.
test.for([
  [OWN, OWN < 500 ? 500 : 1000],
  // The kubelet's score of a pod whose request is below its limit; only root may lower it.
  [979, 1000],
])('a worker with the score %d has sandboxes with %d', async ([worker = 0, sandbox]) => {
  expect(await scoreFrom(worker)).toBe(sandbox);
});

async function starterId(own: Starter): Promise<number> {
  const started = await own.start(['sh', '-c', 'echo $PPID'], null, false);
  const id = Number(await text(started.output));
  await started.ended;
  return id;
}

test('a process that is killed before its start never runs', async () => {
  await using starter = await openStarter(hostShell('/bin/bash', []), join(folder, 'slow'), pipes);
  const shell = await starterId(starter);
  process.kill(shell, 'SIGSTOP');
  const late = await starter.start(['touch', join(folder, 'late')], null, false);
  late.kill();
  process.kill(shell, 'SIGCONT');
  await late.ended;
  expect(existsSync(join(folder, 'late'))).toBe(false);
});

/** A user without other processes here, because processes of root have no limit. */
const USER = 54_321;

test('at the process limit a start fails, and running processes continue', {
  timeout: 60_000,
}, async ({ skip }) => {
  skip(process.getuid?.() !== 0, 'it runs processes of another user, which needs root');
  const own = join(folder, 'full');
  const limited = `exec setpriv --reuid=${USER} --regid=${USER} --clear-groups --inh-caps=+dac_override \
    --ambient-caps=+dac_override bash --noprofile --norc -c 'ulimit -u 2; exec bash --noprofile --norc -c "$@"' bash "$@"`;
  await using starter = await openStarter(
    (script) => ['sh', '-c', limited, 'sh', script, 'swefarm'],
    own,
    pipes,
  );
  const first = await starter.start(['sleep', '600'], null, false);
  await first.running;
  expect(first.reportText()).toMatch(/^\d+\n$/);
  const second = await starter.start(['true'], null, false);
  expect(await text(second.output)).toMatch(/no process/);
  await second.ended;
  expect(existsSync(`/proc/${first.reportText().trim()}`)).toBe(true);
  first.kill();
  await first.ended;
  // The previous process may still be ending.
  for (let round = 0; round < 60; round++) {
    const next = await starter.start(['echo', 'again'], null, false);
    expect(await text(next.output)).toBe('again\n');
  }
});

/** Opens `count` files, each with the lowest free descriptor. Returns the highest descriptor. */
function occupyFiles(count: number, opened: DisposableStack): number {
  const numbers = Array.from({ length: count }, () => openSync('/dev/null', 'r'));
  for (const fd of numbers) opened.defer(() => closeSync(fd));
  return Math.max(...numbers);
}

test('at the limit of open files a start fails, and no file stays open', async () => {
  await using starter = await openStarter(hostShell('/bin/bash', []), join(folder, 'files'), pipes);
  await starterId(starter);
  const before = openFiles().length;
  const limit = (most: string) =>
    execFileSync('prlimit', ['--pid', String(process.pid), `--nofile=${most}:`]);
  const usual = /open files +(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? '1024';
  // A process is needed to raise the limit again. Inherited files with high numbers are above the limit, and stay open.
  using filled = new DisposableStack();
  occupyFiles(32, filled);
  const free = new DisposableStack();
  // The limit suffices for all but the last file that `start` opens.
  const most = occupyFiles(3, free) + 1;
  free.dispose();
  limit(String(most));
  const ended = await starter.start(['true'], null, false).catch((error: unknown) => error);
  filled.dispose();
  limit(usual);
  expect(ended).toMatchObject({ code: 'EMFILE' });
  expect(openFiles().length).toBe(before);
});

test('removed pipes of an unstarted process cause no unhandled error', async () => {
  const own = await openPipes(join(folder, 'removed'));
  await using starter = await openStarter(hostShell('/bin/bash', []), join(folder, 'without'), own);
  const shell = await starterId(starter);
  process.kill(shell, 'SIGSTOP');
  const late = await starter.start(['true'], null, false);
  await own[Symbol.asyncDispose]();
  process.kill(shell, 'SIGCONT');
  // The wait ends with the starter; an error there would be unhandled and end the worker.
  await starter[Symbol.asyncDispose]();
  await late.ended;
});
