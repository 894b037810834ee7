/** Processes that are killed before their start, or that the machine cannot start. */
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openPipes, type Pipes } from './pipes.ts';
import { hostShell, openStarter, type Starter } from './starter.ts';

const folder = temporaryFolder('starter');
let pipes: Pipes;
beforeAll(async () => {
  pipes = await openPipes(join(folder, 'pipes'));
});
afterAll(async () => {
  await pipes[Symbol.asyncDispose]();
});

async function starterId(starter: Starter): Promise<number> {
  const started = await starter.start(['sh', '-c', 'echo $PPID'], null, false);
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

/** @returns the highest descriptor; each is the lowest that was free */
function openFiles(count: number, opened: DisposableStack): number {
  const numbers = Array.from({ length: count }, () => openSync('/dev/null', 'r'));
  for (const fd of numbers) opened.defer(() => closeSync(fd));
  return Math.max(...numbers);
}

/** The target of a descriptor; empty when it was closed meanwhile. */
function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}

test('at the limit of open files a start fails, and no file stays open', async () => {
  await using starter = await openStarter(hostShell('/bin/bash', []), join(folder, 'files'), pipes);
  await starterId(starter);
  const mine = () => readdirSync('/proc/self/fd').filter((fd) => targetOf(fd).includes(folder)).length;
  const before = mine();
  const limit = (most: string) =>
    execFileSync('prlimit', ['--pid', String(process.pid), `--nofile=${most}:`]);
  const usual = /open files +(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? '1024';
  // A process is needed to raise the limit again. Inherited files with high numbers are above the limit, and stay open.
  using filled = new DisposableStack();
  openFiles(32, filled);
  const free = new DisposableStack();
  // Enough for all but the last file that it opens.
  const most = openFiles(3, free) + 1;
  free.dispose();
  limit(String(most));
  const ended = await starter.start(['true'], null, false).catch((error: unknown) => error);
  filled.dispose();
  limit(usual);
  expect(ended).toMatchObject({ code: 'EMFILE' });
  expect(mine()).toBe(before);
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
