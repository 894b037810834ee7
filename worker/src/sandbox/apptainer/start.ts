/** Makes one sandbox of Apptainer: one `exec` with our own process 1, entered through its namespaces ever after. */
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cgroup } from '../namespaces/cgroups.ts';
import { holdSandbox } from '../namespaces/hold.ts';
import { newSandboxId } from '../namespaces/records.ts';
import type { RuntimeSetup } from '../namespaces/setup.ts';
import { INIT, INIT_OOM_SCORE, START, unshareMounts } from '../namespaces/start.ts';
import { startSupervisor } from '../namespaces/supervisor.ts';
import type { Container, ContainerSpec } from '../runtime.ts';
import {
  enterArguments,
  execArguments,
  foldersOf,
  mountTable,
  OWN_FILES,
  type Program,
  placesOf,
} from './arguments.ts';
import { type ApptainerImage, environmentOf } from './images.ts';

/** The work tree may belong to somebody else than the one user there is inside. */
const SAFE_DIRECTORY = {
  GIT_CONFIG_COUNT: '1',
  GIT_CONFIG_KEY_0: 'safe.directory',
  GIT_CONFIG_VALUE_0: '*',
};

/** Throws RolloutFailure sandbox_start / node_disk / node_memory. */
export async function startSandbox(
  ground: RuntimeSetup,
  program: Program,
  spec: ContainerSpec,
  image: ApptainerImage,
  signal: AbortSignal,
): Promise<Container> {
  signal.throwIfAborted();
  const id = newSandboxId('apptainer');
  const places = placesOf(join(ground.scratchDir, id));
  const line = (cgroup: Cgroup | null): string[] => [
    ...unshareMounts(program.root),
    ...ground.shell(START),
    cgroup?.joins.other.join(' ') ?? '',
    places.table,
    program.root ? INIT_OOM_SCORE : '',
    ...execArguments(program, places, image.path, spec.network, cgroup?.views ?? [], id, INIT),
  ];
  const plan = {
    account: { uid: 0, gid: 0, home: '/root' },
    folders: foldersOf(places),
    layers: [{ at: '/', upper: join(places.overlay, 'upper') }] as const,
    lay: async () => {
      const base = program.base[spec.network];
      await Promise.all([
        writeFile(places.table, mountTable(places, program, image.path, spec.network)),
        ...OWN_FILES.map((name) => copyFile(join(base, 'etc', name), join(places.etc, name))),
      ]);
    },
    keep: (cgroup: Cgroup | null) =>
      startSupervisor(line(cgroup), { root: program.root, id, env: ownEnvironment(ground.own) }),
    env: async ({ init }: { init: number }) => ({
      ...SAFE_DIRECTORY,
      ...(await environmentOf(init)),
      ...image.config.env,
    }),
    enter: () => enterArguments(program.root, spec.workdir),
  };
  return holdSandbox(ground, id, spec, plan, signal);
}

/** Whatever Apptainer keeps for itself, it keeps in the runtime's own folder. */
export const ownEnvironment = (own: string): Record<string, string> => ({
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: own,
  ...Object.fromEntries(
    ['APPTAINER', 'SINGULARITY'].flatMap((name) => [
      [`${name}_CONFIGDIR`, join(own, 'config')],
      [`${name}_CACHEDIR`, join(own, 'cache')],
      [`${name}_TMPDIR`, own],
    ]),
  ),
});
