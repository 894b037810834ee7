/** The runtimes of the matrix, and unpacked trees as images on each. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { apptainerRuntime, dockerRuntime, type Runtime, rootfsRuntime } from '@swefarm/sandbox';
import { newId } from '@swefarm/shared';
import { buildSif, importTree, startPodman } from '@swefarm/testkit';

/** By default the runtimes of every submission; `npm run ci:full` names those that take too long for that. */
export const RUNTIMES = (process.env.SWEFARM_TEST_MATRIX ?? 'docker rootfs').split(' ');

/** A runtime and its way to make an unpacked tree an image, which returns the image's name. */
type OpenRuntime = { runtime: Runtime; imageOf(tree: string): Promise<string> };

/** Opens a runtime with its files in `folder`. Its end removes its images, and ends an engine that was started for it. */
export async function openRuntime(name: string, folder: string): Promise<OpenRuntime> {
  const folders = { imagesDir: join(folder, 'images'), scratchDir: join(folder, 'scratch') };
  if (name === 'rootfs')
    return { runtime: await rootfsRuntime(folders), imageOf: async (tree) => `dir:${tree}` };
  if (name === 'apptainer')
    return {
      runtime: await apptainerRuntime({ ...folders, templates: [] }),
      async imageOf(tree) {
        const path = join(folder, `${newId()}.sif`);
        await buildSif(tree, path);
        return path;
      },
    };
  if (name !== 'docker' && name !== 'podman') throw new Error(`the matrix has no runtime ${name}`);
  return openEngine(name);
}

/** Podman is started here, as SWEFARM_TEST_PODMAN_USER when that is set. */
async function openEngine(engine: 'docker' | 'podman'): Promise<OpenRuntime> {
  const stack = new AsyncDisposableStack();
  const user = process.env.SWEFARM_TEST_PODMAN_USER;
  const socketPath =
    engine === 'podman'
      ? stack.use(await startPodman(user ? { user } : {})).socketPath
      : (process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock');
  // Docker's client, which ends containers and removes images here, speaks to both.
  process.env.DOCKER_HOST = `unix://${socketPath}`;
  const runtime = stack.use(await dockerRuntime({ engine, socketPath }));
  return {
    runtime: { ...runtime, [Symbol.asyncDispose]: () => stack.disposeAsync() },
    async imageOf(tree) {
      const tag = `swefarm-test/matrix:${newId()}`;
      await importTree(socketPath, tree, tag);
      stack.defer(() => void execFileSync('docker', ['rmi', '-f', tag], { timeout: 60_000 }));
      return tag;
    },
  };
}
