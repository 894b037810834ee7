/** Starts one sandbox: one `apptainer exec` with the farm's process 1, whose namespaces later processes enter. */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { INIT, type LaunchPlan, launchSandbox } from '../namespaces/launch.ts';
import { newSandboxId } from '../namespaces/records.ts';
import type { RuntimeSetup } from '../namespaces/setup.ts';
import { type Container, type ContainerSpec, DEFAULT_PATH } from '../runtime.ts';
import {
  enterArguments,
  execArguments,
  foldersOf,
  mountTable,
  OWN_FILES,
  type Program,
  pathsOf,
} from './arguments.ts';
import { type ApptainerImage, environmentOf } from './images.ts';

/** Lets git work in a tree of another user: root is the only user in the sandbox. */
const SAFE_DIRECTORY = {
  GIT_CONFIG_COUNT: '1',
  GIT_CONFIG_KEY_0: 'safe.directory',
  GIT_CONFIG_VALUE_0: '*',
};

/** Throws RolloutFailure sandbox_start / sandbox_refused / node_disk / node_memory. */
export async function startApptainer(
  setup: RuntimeSetup,
  program: Program,
  spec: ContainerSpec,
  image: ApptainerImage,
  signal: AbortSignal,
): Promise<Container> {
  signal.throwIfAborted();
  const id = newSandboxId('apptainer');
  const paths = pathsOf(join(setup.scratchDir, id));
  const base = program.base[spec.network];
  const plan: LaunchPlan = {
    account: { uid: 0, gid: 0, home: '/root' },
    folders: foldersOf(paths),
    layers: [{ at: '/', upper: join(paths.overlay, 'upper') }],
    mounts: mountTable(paths, program, image.path, spec.network),
    prepare: async () => {
      await Promise.all(OWN_FILES.map((name) => copyFile(join(base, 'etc', name), join(paths.etc, name))));
      // Without root, Apptainer cannot make the targets of mounts.
      for (const { target } of spec.mounts ?? [])
        await mkdir(join(paths.overlay, 'points', target), { recursive: true });
    },
    command: (cgroup) => execArguments(program, paths, image.path, spec, cgroup?.views ?? [], id, INIT),
    supervisor: { id, env: ownEnvironment(setup.folder) },
    env: async (init) => ({ ...SAFE_DIRECTORY, ...(await environmentOf(init)), ...image.config.env }),
    enter: enterArguments(program.root, spec.workdir),
  };
  return launchSandbox(setup, id, spec, plan, signal);
}

export const ownEnvironment = (folder: string): Record<string, string> => ({
  PATH: DEFAULT_PATH,
  HOME: folder,
  ...Object.fromEntries(
    ['APPTAINER', 'SINGULARITY'].flatMap((name) => [
      [`${name}_CONFIGDIR`, join(folder, 'config')],
      [`${name}_CACHEDIR`, join(folder, 'cache')],
      [`${name}_TMPDIR`, folder],
    ]),
  ),
});
