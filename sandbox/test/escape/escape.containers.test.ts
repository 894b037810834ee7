/** The escape suite on Docker and the rootfs runtime; in `npm run ci:full` on every runtime, with the slow attempts. */
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { importTree, minimalImage, type PodmanEngine, startPodman } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, it } from 'vitest';
import { apptainerRuntime } from '../../src/apptainer/runtime.ts';
import { dockerRuntime } from '../../src/docker/runtime.ts';
import { rootfsRuntime } from '../../src/rootfs/runtime.ts';
import { noApptainer, type Subject, WHOLE } from '../subject.ts';
import { escapeSuite } from './suite.ts';

const folder = temporaryFolder('escapes');
await chmod(folder, 0o755);
const folders = { imagesDir: join(folder, 'images'), scratchDir: join(folder, 'scratch') };
let podman: PodmanEngine | null = null;
afterAll(async () => {
  await podman?.[Symbol.asyncDispose]();
});

async function engineSubject(engine: 'docker' | 'podman', socketPath: string): Promise<Subject> {
  const { tree, version } = await minimalImage();
  const image = `swefarm-test/minimal:${version}`;
  await importTree(socketPath, tree, image);
  return { runtime: await dockerRuntime({ engine, socketPath }), image, imageWithoutBash: null };
}

const treeSubject = async (runtime: Subject['runtime']): Promise<Subject> => ({
  runtime,
  image: `dir:${(await minimalImage()).tree}`,
  imageWithoutBash: null,
});

escapeSuite('docker', () =>
  engineSubject('docker', process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock'),
);
escapeSuite('rootfs', async () => treeSubject(await rootfsRuntime(folders)));
if (WHOLE) {
  escapeSuite('rootfs without control groups', async () =>
    treeSubject(await rootfsRuntime({ ...folders, cgroups: false })),
  );
  escapeSuite('podman', async () => {
    podman = await startPodman();
    return engineSubject('podman', podman.socketPath);
  });
  const missing = noApptainer();
  if (missing === null) {
    escapeSuite('apptainer', async () => treeSubject(await apptainerRuntime({ ...folders, templates: [] })));
  } else {
    it('apptainer', ({ skip }) => skip(missing));
  }
}
