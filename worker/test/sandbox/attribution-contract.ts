/** What code in a sandbox breaks must be known as its own doing in every isolating runtime, and what the node breaks must not. */
import { setTimeout as sleep } from 'node:timers/promises';
import { RolloutFailure, waitAtMost } from '@swefarm/shared';
import { expect, it } from 'vitest';
import { isCausedByCode, type Suspect } from '../../src/sandbox/attribution.ts';
import type { Container } from '../../src/sandbox/runtime.ts';
import { openShell } from '../../src/sandbox/shell.ts';
import { takePatch } from '../../src/sandbox/snapshot.ts';
import { REPOSITORY } from './patch-contract.ts';
import { NEVER, type Subject, sh, snapshotOf, start, TEST_IMAGE_MARKER } from './subject.ts';

/** Nothing of it would be survived by a machine that is no sandbox. */
const ONLY = `[ -e ${TEST_IMAGE_MARKER} ] || exit 99;`;

/** Who has opened it by then can be let go under no name any more. */
const LATE_PIPE =
  'mkfifo /tmp/p; ln -sf /tmp/p /etc/passwd; (sleep 2; rm /tmp/p; sleep 600) >/dev/null 2>&1 &';

/** Fails with what it was waited for, long before the test's own time is over. */
async function within<T>(seconds: number, work: Promise<T>): Promise<T> {
  const ending = await waitAtMost(work, seconds * 1000);
  if (ending.by !== 'itself') throw new Error(`not done after ${seconds} s`);
  return ending.value;
}

export function blameContract(subject: () => Subject): void {
  const suspect = (container: Container, changes: Partial<Suspect> = {}): Suspect => ({
    container,
    runtime: subject().runtime,
    fresh: () => start(subject()),
    diskBytes: null,
    signal: NEVER,
    ...changes,
  });
  const errorOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => null,
      (error: unknown) => error,
    );

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
  ])('%s: no patch can be taken, by its own doing', async (_what, script) => {
    await using container = await start(subject());
    await sh(container, REPOSITORY);
    const snapshot = await snapshotOf(container);
    // Its end may have no shell left to tell of it.
    await sh(container, `${ONLY} echo work >>pkg/a.py; ${script}`).catch(() => undefined);
    const error = await errorOf(takePatch(container, snapshot, NEVER));
    expect(error).toBeInstanceOf(RolloutFailure);
    expect(await isCausedByCode(error, suspect(container))).toBe(true);
  });

  it('bash is gone, and the shell with it: its own doing', async () => {
    await using container = await start(subject());
    await using shell = await openShell(container, { workdir: container.workdir, activate: '', env: {} });
    const options = { timeoutMs: 20_000, maxOutputBytes: 1_000, signal: NEVER };
    const error = await errorOf(shell.run(`${ONLY} rm -f /bin/bash /usr/bin/bash; kill -9 $$`, options));
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
  ])('%s: no call of ours waits for ever, and nothing stays', async (_what, script) => {
    const { runtime } = subject();
    const container = await start(subject());
    await sh(container, REPOSITORY);
    const snapshot = await snapshotOf(container);
    await sh(container, `${ONLY} ${script}`);
    // An engine that reads them fails, by the agent's doing; where nobody does, nothing is to be judged.
    const error = await within(90, errorOf(takePatch(container, snapshot, NEVER)));
    if (error !== null) expect(await within(90, isCausedByCode(error, suspect(container)))).toBe(true);
    expect(
      await within(
        60,
        container.getFile('/etc/passwd', 1e6, NEVER).catch(() => null),
      ),
    ).toBeDefined();
    // Removed in the middle of another one.
    const options = { timeoutMs: 60_000, maxOutputBytes: 100, signal: NEVER };
    const last = errorOf(container.exec(['true'], options));
    await sleep(1_000);
    await within(90, container[Symbol.asyncDispose]());
    await within(90, last);
    expect((await runtime.listOwned()).map(({ id }) => id)).not.toContain(container.id);
  });

  it('no sleep is left: the container goes on', async () => {
    await using container = await start(subject());
    const ends =
      'rm -f /bin/sleep /usr/bin/sleep; for p in $(grep -lx sleep /proc/[0-9]*/comm | cut -d/ -f3); do kill -9 $p; done; true';
    await sh(container, `${ONLY} ${ends}`);
    await sh(container, 'for i in 1 2 3 4 5 6 7 8 9; do env true; done');
    expect(await container.state()).toBe('running');
  });

  it('a container that was removed, a node where none starts, a caller who left: not its doing', async () => {
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
