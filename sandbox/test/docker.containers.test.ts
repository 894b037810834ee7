/** The contract on a real Docker Engine. */
import { existsSync, readFileSync } from 'node:fs';
import { RolloutFailure } from '@swefarm/shared';
import Docker from 'dockerode';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listChanges, pathKind } from '../src/docker/changes.ts';
import { inTime, killWithoutEngine, NOT_YET_COMMAND } from '../src/docker/deadline.ts';
import { sandboxContract } from './contract.ts';
import { describeUnless, engineSubject, NEVER, OPTIONS, type Subject, sh, start } from './subject.ts';

const socketPath = process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock';

sandboxContract('docker', () => engineSubject({ socketPath }), {
  isolated: true,
  limits: { memory: 'enforced', pids: 'enforced' },
});

let subject: Subject;
beforeAll(async () => {
  subject = await engineSubject({ socketPath });
});
afterAll(() => subject.runtime[Symbol.asyncDispose]());

it("reads changes from the engine's list where its files are not readable", async () => {
  await using container = await start(subject);
  const odd = '/opt/odd "},{"Path":"/etc';
  await sh(
    container,
    `printf x >>/usr/bin/nohup; rm /usr/bin/nl; mkdir -p '${odd}'; echo >'${odd}/é'; ln -s /x /etc/l`,
  );
  await container.end?.(NEVER);
  const docker = new Docker({ socketPath });
  const seen = new Map<string, boolean>();
  const look = {
    entersFolder: () => true,
    visit: ({ path = '', removed = false }) => void seen.set(path, removed),
  };
  await listChanges(docker, container.id, look, NEVER);
  expect(Object.fromEntries(seen)).toMatchObject({
    '/usr/bin/nohup': false,
    '/usr/bin/nl': true,
    [`${odd}/é`]: false,
    '/etc/l': false,
  });
  expect(seen.has('/usr/bin/env')).toBe(false);
  const kinds = ['/usr/bin', '/usr/bin/nohup', '/etc/l', '/usr/bin/nl'].map((path) =>
    pathKind(docker.getContainer(container.id), path),
  );
  expect(await Promise.all(kinds)).toEqual(['folder', 'file', 'other', 'missing']);
  await container[Symbol.asyncDispose]();
  await expect(listChanges(docker, container.id, look, NEVER)).rejects.toThrow(/no such container/i);
});

it('words in the names of files do not select the class of a failure', async () => {
  await using container = await start(subject);
  const name = `/invalid reference format${'z'.repeat(255)}`;
  await sh(container, `ln -s '${name}' /tmp/link`);
  const lost = { failureClass: 'sandbox_lost' };
  await expect(container.getFile('/tmp/link', 100, NEVER)).rejects.toMatchObject(lost);
  const file = { path: `/tmp${name}`, content: Buffer.from('x') };
  await expect(container.putFiles([file], NEVER)).rejects.toMatchObject(lost);
});

it('the first process executes no requests of a command', async () => {
  await using container = await start(subject);
  // No shell is open, so the first process takes requests.
  await container.putFiles([{ path: '/tmp/x', content: Buffer.from('x') }], NEVER);
  const request = 'run n 13\\n; exit 137  \\n';
  const write = `for first in '' '\\n' 'x '; do printf "\${first}${request}" >/proc/1/fd/0; done; sleep 1`;
  await sh(container, write).catch(() => undefined);
  expect(await container.state()).toBe('running');
});

describeUnless(
  process.getuid?.() === 0 ? null : "needs root, as ending an engine's processes does",
  'an engine that waits for what is in a container',
  () => {
    it('is removed from outside', async () => {
      const docker = new Docker({ socketPath });
      const watchless = {
        Image: subject.image,
        Cmd: ['/bin/sh', '-c', 'mkfifo /p; ln -sf /p /etc/passwd; exec sleep 600'],
      };
      const container = await docker.createContainer({ ...watchless, NetworkDisabled: true });
      try {
        await container.start();
        const { State } = await container.inspect();
        // Waits until the pipe exists.
        await expect.poll(() => existsSync(`/proc/${State.Pid}/root/p`), { timeout: 30_000 }).toBe(true);
        await expect
          .poll(() => readFileSync(`/proc/${State.Pid}/comm`, 'latin1').trim(), { timeout: 30_000 })
          .toBe('sleep');
        const exec = await container.exec({ Cmd: ['true'], AttachStdout: true });
        (await exec.start({ hijack: true, stdin: true })).resume();
        await expect
          .poll(() => killWithoutEngine(container.id, NOT_YET_COMMAND), { timeout: 30_000 })
          .toBeGreaterThan(0);
        expect((await inTime(container.inspect(), 30_000)).State.Running).toBe(true);
        expect(await killWithoutEngine('f'.repeat(64))).toBe(0);
        expect(await killWithoutEngine(container.id.slice(0, 12))).toBe(0);
        expect((await inTime(container.inspect(), 30_000)).State.Running).toBe(true);
      } finally {
        await killWithoutEngine(container.id);
        await inTime(container.remove({ force: true }), 60_000);
      }
    });

    it('starts a command or loses the sandbox in seconds while code inside stops all that starts', async () => {
      await using container = await start(subject);
      await sh(container, '(setsid sh -c "while :; do kill -STOP -1; done" >/dev/null 2>&1 &)');
      const options = { ...OPTIONS, timeoutMs: 1_000 };
      const ends = await Promise.all(
        Array.from({ length: 8 }, () =>
          container.exec(['true'], options).then(
            ({ timedOut }) => (timedOut ? 'timed_out' : 'ended'),
            (error: unknown) => (error instanceof RolloutFailure ? error.failureClass : error),
          ),
        ),
      );
      expect(
        [...new Set(ends)].filter((end) => !['timed_out', 'ended', 'sandbox_lost'].includes(String(end))),
      ).toEqual([]);
    });
  },
);
