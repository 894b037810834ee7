/** The contract on a Podman of our own, behind its Docker API; as SWEFARM_TEST_PODMAN_USER when that is set. */
import { importTree, minimalImage, type PodmanEngine, startPodman } from '@swefarm/testkit';
import { afterAll, beforeAll } from 'vitest';
import { dockerRuntime } from '../../src/sandbox/docker/runtime.ts';
import { sandboxContract } from './contract.ts';
import { WHOLE } from './subject.ts';

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
  { isolated: true, limits: ['memory', 'pids'], whole: WHOLE },
);
