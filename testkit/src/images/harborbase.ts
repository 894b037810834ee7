import { run } from '../launchers/run.ts';
import { importTree } from './import.ts';
import { minimalImage } from './minimal.ts';

const SOCKET = '/var/run/docker.sock';
const BASE = 'swefarm-harbor/base';

/** Makes the base image of our Harbor tasks in Docker. The tag has no version, because the Dockerfiles of the tasks name the tag. */
export async function makeHarborBase(): Promise<void> {
  const { tree, version } = await minimalImage();
  const versioned = `${BASE}:${version}`;
  await importTree(SOCKET, tree, versioned);
  await run('docker', ['tag', versioned, `${BASE}:testkit`]);
}
