/** The contract on a Podman of our own, behind its Docker API; as SWEFARM_TEST_PODMAN_USER when that is set. */
import { existsSync } from 'node:fs';
import { importTree, minimalImage, type PodmanEngine, startPodman } from '@swefarm/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dockerRuntime } from '../../src/sandbox/docker/runtime.ts';
import { sandboxContract } from './contract.ts';
import { NEVER, WHOLE } from './subject.ts';

const user = process.env.SWEFARM_TEST_PODMAN_USER;
/** Without root, control groups of version 1 are the kernel's no longer: then we watch. */
const watched = user !== undefined && !existsSync('/sys/fs/cgroup/cgroup.controllers');
const held = watched ? 'watched' : 'enforced';
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
  { isolated: true, limits: { memory: held, pids: held }, whole: WHOLE },
);

it('says who holds its limits', async () => {
  await using runtime = await dockerRuntime({ engine: 'podman', socketPath: engine.socketPath });
  const check = await runtime.check(NEVER);
  expect(check.version).toContain('Podman');
  expect(check.limits).toMatchObject({ memory: held, pids: held });
  expect(check.problems.join().includes('once a second')).toBe(watched);
});
