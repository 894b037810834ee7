/** The contract on a real Docker Engine. */

import { importTree, minimalImage } from '@swefarm/testkit';
import { dockerRuntime } from '../../src/sandbox/docker/runtime.ts';
import { sandboxContract } from './contract.ts';

const socketPath = process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock';

sandboxContract(
  'docker',
  async () => {
    const [full, bare] = await Promise.all([minimalImage(), minimalImage({ bash: false })]);
    const image = `swefarm-test/minimal:${full.version}`;
    const imageWithoutBash = `swefarm-test/nobash:${bare.version}`;
    await importTree(socketPath, full.tree, image);
    await importTree(socketPath, bare.tree, imageWithoutBash);
    return { runtime: await dockerRuntime({ socketPath }), image, imageWithoutBash };
  },
  { isolated: true, limits: { memory: 'enforced', pids: 'enforced' } },
);
