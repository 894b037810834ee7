/** The contract on a separate Podman, by its Docker API; as SWEFARM_TEST_PODMAN_USER when that is set. */
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { type PodmanEngine, startPodman } from '@swefarm/testkit';
import Docker from 'dockerode';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inTime, isLate, killWithoutEngine } from '../src/docker/deadline.ts';
import { dockerRuntime } from '../src/docker/runtime.ts';
import { sandboxContract } from './contract.ts';
import { describeUnless, engineSubject, importImage, NEVER, sh, start, WHOLE } from './subject.ts';

const user = process.env.SWEFARM_TEST_PODMAN_USER;
/** Without root on control groups of version 1, the watchdog enforces the limits. */
const watched = user !== undefined && !existsSync('/sys/fs/cgroup/cgroup.controllers');
const limited = watched ? 'watched' : 'enforced';
let engine: PodmanEngine;
beforeAll(async () => {
  engine = await startPodman(user ? { user } : {});
});
afterAll(() => engine[Symbol.asyncDispose]());

sandboxContract(
  user ? 'podman without root' : 'podman',
  () => engineSubject({ engine: 'podman', socketPath: engine.socketPath }),
  { isolated: true, limits: { memory: limited, pids: limited }, whole: WHOLE },
);

it('reports who enforces its limits', async () => {
  await using runtime = await dockerRuntime({ engine: 'podman', socketPath: engine.socketPath });
  const check = await runtime.check(NEVER);
  expect(check.version).toContain('Podman');
  expect(check.limits).toMatchObject({ memory: limited, pids: limited });
  expect(check.problems.join().includes('once a second')).toBe(watched);
});

describeUnless(
  process.getuid?.() === 0 && !user ? null : "needs root, as ending an engine's processes does",
  'a Podman whose service waits for what is in a container',
  () => {
    it('is killed by a removal that times out, and removed when the service answers again', async () => {
      await using own = await startPodman();
      const { socketPath } = own;
      const image = await importImage(socketPath);
      const warnings: string[] = [];
      const log = {
        warn: (fields: object, message: string) => warnings.push(message + JSON.stringify(fields)),
      };
      await using runtime = await dockerRuntime({ engine: 'podman', socketPath, answerMs: 2_000, log });
      const subject = { runtime, image, imageWithoutBash: null };
      const container = await start(subject);
      await sh(container, 'mkfifo /p; ln -sf /p /etc/passwd');

      // This exec skips the worker's check, as if the file appeared just after the check.
      const docker = new Docker({ socketPath });
      const stuck = docker.getContainer(container.id);
      const found = (await stuck.inspect()) as unknown as { GraphDriver: { Data: { MergedDir: string } } };
      const exec = await stuck.exec({ Cmd: ['true'], AttachStdout: true });
      exec.start({ hijack: true, stdin: true }).catch(() => undefined);
      const late = () => inTime(stuck.inspect(), 1_000).then(() => false, isLate);
      await expect.poll(late, { timeout: 30_000 }).toBe(true);

      await inTime(container[Symbol.asyncDispose]() as Promise<void>, 30_000);
      expect(warnings).toEqual([
        expect.stringMatching(`^container left for the reaper.*${container.id}.*did not answer`),
      ]);
      expect(await killWithoutEngine(container.id)).toBe(0);

      closeSync(openSync(join(found.GraphDriver.Data.MergedDir, 'p'), 'r+'));
      await expect
        .poll(() => runtime.remove(container.id).then(() => 'removed', String), { timeout: 60_000 })
        .toBe('removed');
      expect(await runtime.listOwned()).toEqual([]);
    });
  },
);
