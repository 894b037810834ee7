/** The contract on a Podman of our own, behind its Docker API; as SWEFARM_TEST_PODMAN_USER when that is set. */
import { existsSync } from 'node:fs';
import { importTree, minimalImage, type PodmanEngine, startPodman } from '@swefarm/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dockerRuntime } from '../../src/sandbox/docker/runtime.ts';
import { sandboxContract } from './contract.ts';
import { LIMITS, NEVER, spec, WHOLE } from './subject.ts';

const user = process.env.SWEFARM_TEST_PODMAN_USER;
let engine: PodmanEngine;
beforeAll(async () => {
  engine = await startPodman(user ? { user } : {});
});
afterAll(() => engine[Symbol.asyncDispose]());

sandboxContract(
  user ? 'podman without root' : 'podman',
  async () => {
    const [full, bare] = await Promise.all([minimalImage(), minimalImage({ bash: false })]);
    const image = `swefarm-test/minimal:${full.version}`;
    const imageWithoutBash = `swefarm-test/nobash:${bare.version}`;
    await importTree(engine.socketPath, full.tree, image);
    await importTree(engine.socketPath, bare.tree, imageWithoutBash);
    const runtime = await dockerRuntime({ engine: 'podman', socketPath: engine.socketPath });
    return { runtime, image, imageWithoutBash };
  },
  // What is only watched is not enforced: a process that is gone within a second is not caught.
  { isolated: true, limits: user ? [] : ['memory', 'pids'], whole: WHOLE },
);

it('limits memory, by the kernel or by its watchdog, and says which', async () => {
  const { tree, version } = await minimalImage();
  const image = `swefarm-test/minimal:${version}`;
  await importTree(engine.socketPath, tree, image);
  await using runtime = await dockerRuntime({ engine: 'podman', socketPath: engine.socketPath });
  const check = await runtime.check(NEVER);
  expect(check.version).toContain('Podman');
  const watched = user !== undefined && !existsSync('/sys/fs/cgroup/cgroup.controllers');
  expect(check.limits.memory).toBe(watched ? 'watched' : 'enforced');
  expect(check.problems.join().includes('once a second')).toBe(watched);
  const limits = { ...LIMITS, memoryBytes: 200_000_000 };
  await using container = await runtime.start(
    spec(await runtime.ensureImage(image, NEVER), { limits }),
    NEVER,
  );
  const line = ['python3', '-c', 'x = b"x" * 300_000_000; import time; time.sleep(60)'];
  const result = await container.exec(line, { timeoutMs: 60_000, maxOutputBytes: 1_000, signal: NEVER });
  expect(result).toMatchObject({ exitCode: 137, timedOut: false });
  expect(await container.oomKills()).toBe(1);
  expect(await container.state()).toBe('running');
});
