/** Damage by code in a sandbox is attributed to the code in every isolating runtime, damage by the node is not. */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { newId, poll, RolloutFailure, waitAtMost } from '@swefarm/shared';
import { expect, it } from 'vitest';
import { isCausedByCode, type Suspect } from '../src/attribution.ts';
import { isFirstProcess, membersBy, readProcessFile } from '../src/namespaces/processes.ts';
import type { Container } from '../src/runtime.ts';
import { takePatch } from '../src/snapshot.ts';
import { REPOSITORY } from './patch-contract.ts';
import {
  describeUnless,
  errorOf,
  NEVER,
  OPTIONS,
  type Subject,
  sh,
  shellOf,
  snapshotOf,
  start,
  TEST_IMAGE_MARKER,
} from './subject.ts';

/** Guard before harmful commands: ends the script outside of the test image. */
const ONLY = `[ -e ${TEST_IMAGE_MARKER} ] || exit 99;`;

/** Links /etc/passwd to a pipe, and removes the pipe after 2 s: no name is left by which a test could release a waiting reader. */
const LATE_PIPE =
  'mkfifo /tmp/p; ln -sf /tmp/p /etc/passwd; (sleep 2; rm /tmp/p; sleep 600) >/dev/null 2>&1 &';

/** Fails with a message before the test's own timeout. */
async function within<T>(seconds: number, work: Promise<T>): Promise<T> {
  const ending = await waitAtMost(work, seconds * 1000);
  if (ending.by !== 'itself') throw new Error(`not done after ${seconds} s`);
  return ending.value;
}

/** Returns the host's id of process 1 of a container: process 1 of the namespace of a command in the container. */
async function firstProcessOf(container: Container): Promise<number> {
  const mark = newId();
  await sh(container, `sh -c 'sleep 300; : ${mark}' >/dev/null 2>&1 &`);
  const find = async (): Promise<number | null> => {
    for (const members of (await membersBy('pid')).values()) {
      const lines = await Promise.all(members.map((pid) => readProcessFile(pid, 'cmdline')));
      if (!lines.some((line) => line.includes(`; : ${mark}`))) continue;
      for (const pid of members) if (await isFirstProcess(pid)) return pid;
    }
    return null;
  };
  const found = await poll(find, { pauseMs: 100, withinMs: 30_000 });
  if (!found) throw new Error('process 1 was not found');
  return found;
}

/** Overwrites the code of a process from outside, so that it ends by itself. No command inside may do this. */
function breakCode(pid: number): void {
  const maps = readFileSync(`/proc/${pid}/maps`, 'latin1').matchAll(
    /^([0-9a-f]+)-([0-9a-f]+) r-xp .*\/.*$/gm,
  );
  const memory = openSync(`/proc/${pid}/mem`, 'r+');
  for (const [, from = '', to = ''] of maps) {
    const [start, end] = [Number.parseInt(from, 16), Number.parseInt(to, 16)];
    writeSync(memory, Buffer.alloc(end - start, 0xff), 0, end - start, start);
  }
  closeSync(memory);
}

const ended = (container: Container): Promise<unknown> =>
  poll(async () => (await container.state()) !== 'running', { pauseMs: 50, withinMs: 30_000 });

export function blameContract(subject: () => Subject): void {
  const suspect = (container: Container, changes: Partial<Suspect> = {}): Suspect => ({
    container,
    runtime: subject().runtime,
    fresh: () => start(subject()),
    diskBytes: null,
    signal: NEVER,
    ...changes,
  });

  it.each([
    ['git is gone', 'rm /usr/bin/git'],
    [
      'git says what it likes',
      'printf "#!/bin/sh\\nexit 0\\n" >/tmp/g; chmod +x /tmp/g; mv /tmp/g /usr/bin/git; rm -rf /.swefarm-* /var/tmp/.swefarm-*',
    ],
    ['our folder is gone', 'rm -rf /.swefarm-* /var/tmp/.swefarm-* /tmp/.swefarm-*'],
    ['the repository is gone', 'rm -rf .git'],
    [
      'a file is where the tree was',
      'cd /; rm -rf /testbed/* /testbed/.[a-z]*; rm -rf /testbed; echo >/testbed',
    ],
    ['the shell is gone', 'rm -f /bin/sh /usr/bin/sh'],
    ['nothing can be loaded', 'rm -rf /usr/lib/*'],
  ])('%s: the failed patch is attributed to the code', async (_what, script) => {
    await using container = await start(subject());
    await sh(container, REPOSITORY);
    const snapshot = await snapshotOf(container);
    // The script may leave no shell, so that the exec fails.
    await sh(container, `${ONLY} echo work >>pkg/a.py; ${script}`).catch(() => undefined);
    const error = await errorOf(takePatch(container, snapshot, NEVER));
    expect(error).toBeInstanceOf(RolloutFailure);
    expect(await isCausedByCode(error, suspect(container))).toBe(true);
  });

  it('a removed bash is attributed to the code', async () => {
    await using container = await start(subject());
    await using shell = await shellOf(container);
    const command = `${ONLY} rm -f /bin/bash /usr/bin/bash; kill -9 $$`;
    const error = await errorOf(shell.run(command, { ...OPTIONS, timeoutMs: 20_000 }));
    expect(error).toBeInstanceOf(RolloutFailure);
    expect(await isCausedByCode(error, suspect(container))).toBe(true);
  });

  it.each([
    ['a pipe is where the users are', 'rm /etc/passwd; mkfifo /etc/passwd'],
    ['a pipe is where the groups are', 'rm /etc/group; mkfifo /etc/group'],
    ['a link to a pipe, which is gone once it is opened', LATE_PIPE],
    ['the groups have no end', 'ln -sf /dev/zero /etc/group'],
    ['the groups are a thousand gigabytes', 'truncate -s 1000G /etc/group'],
    ['a link to a pipe where an engine does not look', 'mkfifo /dev/shm/p; ln -sf /dev/shm/p /etc/group'],
  ])('%s: all calls end, and nothing is left', async (_what, script) => {
    const { runtime } = subject();
    const container = await start(subject());
    await sh(container, REPOSITORY);
    const snapshot = await snapshotOf(container);
    await sh(container, `${ONLY} ${script}`);
    // An engine that reads these files fails, which is attributed to the code; other engines give no error.
    const error = await within(90, errorOf(takePatch(container, snapshot, NEVER)));
    if (error !== null) expect(await within(90, isCausedByCode(error, suspect(container)))).toBe(true);
    const users = container.getFile('/etc/passwd', 1e6, NEVER).catch(() => null);
    expect(await within(60, users)).toBeDefined();
    // The container is removed while an exec may still wait.
    const last = errorOf(container.exec(['true'], { ...OPTIONS, timeoutMs: 60_000 }));
    await sleep(1_000);
    await within(90, container[Symbol.asyncDispose]());
    await within(90, last);
    expect((await runtime.listOwned()).map(({ id }) => id)).not.toContain(container.id);
  });

  it('without `sleep` the container runs on', async () => {
    await using container = await start(subject());
    const ends =
      'rm -f /bin/sleep /usr/bin/sleep; for p in $(grep -lx sleep /proc/[0-9]*/comm | cut -d/ -f3); do kill -9 $p; done; true';
    await sh(container, `${ONLY} ${ends}`);
    await sh(container, 'for i in 1 2 3 4 5 6 7 8 9; do env true; done');
    expect(await container.state()).toBe('running');
  });

  it('a container that somebody removes never seems to have ended by itself', async () => {
    await using container = await start(subject());
    const removal = subject().runtime.remove(container.id);
    const seen: unknown[] = [];
    do seen.push(await container.state().catch(() => null));
    while (seen.at(-1) !== 'gone');
    expect(seen).not.toContain('exited');
    await removal;
  });

  const root = process.getuid?.() === 0 ? null : 'only root can end a process 1';
  describeUnless(root, 'the end of process 1', () => {
    const failure = new RolloutFailure('evaluation_lost', 'the container has ended');

    it('a kill from outside is infrastructure', async () => {
      await using container = await start(subject());
      process.kill(await firstProcessOf(container), 'SIGKILL');
      await ended(container);
      expect(await container.state()).toBe('killed');
      expect(await isCausedByCode(failure, suspect(container))).toBe(false);
    });

    it('an end by itself is attributed to the code, unless the node starts no container', async () => {
      await using container = await start(subject());
      const first = await firstProcessOf(container);
      breakCode(first);
      await container.killProcesses().catch(() => undefined);
      await ended(container);
      expect(await container.state()).toBe('exited');
      const fresh = () => Promise.reject(new RolloutFailure('sandbox_start', 'the engine starts nothing'));
      expect(await isCausedByCode(failure, suspect(container, { fresh }))).toBe(false);
      expect(await isCausedByCode(failure, suspect(container))).toBe(true);
    });
  });

  it('a container without memory for a command is attributed to the code', async () => {
    await using container = await start(subject());
    const starved = new RolloutFailure('node_memory', 'x', { cause: new Error('cannot allocate memory') });
    expect(await isCausedByCode(starved, suspect(container))).toBe(true);
    expect(await isCausedByCode(new RolloutFailure('node_memory', 'x'), suspect(container))).toBe(false);
  });

  it('a failure of an image is attributed to the code of a container that runs', async () => {
    await using container = await start(subject());
    const failure = new RolloutFailure('image_not_found', 'open /out/invalid reference format');
    expect(await isCausedByCode(failure, suspect(container))).toBe(true);
  });

  it('a removal, a node without starts, and an abort are not attributed to the code', async () => {
    await using container = await start(subject());
    const failure = new RolloutFailure('sandbox_lost', 'the stream broke');
    expect(await isCausedByCode(failure, suspect(container))).toBe(true);
    expect(await isCausedByCode(failure, suspect(container, { signal: AbortSignal.abort() }))).toBe(false);
    const fresh = () => Promise.reject(new RolloutFailure('sandbox_start', 'the engine starts nothing'));
    expect(await isCausedByCode(failure, suspect(container, { fresh }))).toBe(false);
    for (const other of [
      new RolloutFailure('engine_unreachable', 'x'),
      new RolloutFailure('policy_slow', 'x'),
      new Error('x'),
    ])
      expect(await isCausedByCode(other, suspect(container))).toBe(false);
    await subject().runtime.remove(container.id);
    expect(await isCausedByCode(failure, suspect(container))).toBe(false);
  });
}
