/** The escape suite on Docker and the rootfs runtime; in `npm run ci:full` on every runtime, with the slow attempts. */
import { minimalImage, type PodmanEngine, startPodman } from '@swefarm/testkit';
import { afterAll, it } from 'vitest';
import { apptainerRuntime } from '../../src/apptainer/runtime.ts';
import { rootfsRuntime } from '../../src/rootfs/runtime.ts';
import { engineSubject, noApptainer, runtimeFolders, type Subject, WHOLE } from '../subject.ts';
import { escapeSuite } from './suite.ts';

const folders = await runtimeFolders('escapes');
let podman: PodmanEngine | null = null;
afterAll(async () => {
  await podman?.[Symbol.asyncDispose]();
});

const treeSubject = async (runtime: Subject['runtime']): Promise<Subject> => ({
  runtime,
  image: `dir:${(await minimalImage()).tree}`,
  imageWithoutBash: null,
});

escapeSuite('docker', () =>
  engineSubject({ socketPath: process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock' }),
);
escapeSuite('rootfs', async () => treeSubject(await rootfsRuntime(folders)));
if (WHOLE) {
  escapeSuite('rootfs without control groups', async () =>
    treeSubject(await rootfsRuntime({ ...folders, cgroups: false })),
  );
  escapeSuite('podman', async () => {
    podman = await startPodman();
    return engineSubject({ engine: 'podman', socketPath: podman.socketPath });
  });
  const missing = noApptainer();
  if (missing === null) {
    escapeSuite('apptainer', async () => treeSubject(await apptainerRuntime({ ...folders, templates: [] })));
  } else {
    it('apptainer', ({ skip }) => skip(missing));
  }
}
