/**
 * Runs containers with Apptainer (or Singularity), for clusters without a container engine. Apptainer mounts the image and makes the
 * namespaces. Everything else works as in the rootfs runtime. docs/apptainer.md describes isolation and limits.
 */
import { join } from 'node:path';
import { errorMessage } from '@swefarm/shared';
import { EMPTY_CONFIG } from '../images/config.ts';
import { evictUnpacked } from '../images/evict.ts';
import { INTERNAL_SPEC } from '../internal.ts';
import { findProgram } from '../namespaces/host.ts';
import { unshareMounts } from '../namespaces/launch.ts';
import { imagesInUse, openRuntime, type RuntimeSetup, type SetupOptions } from '../namespaces/setup.ts';
import { checkRuntime, type Trial } from '../namespaces/trial.ts';
import { run } from '../run.ts';
import type { Runtime, RuntimeCheck } from '../runtime.ts';
import type { Program } from './arguments.ts';
import { canMountSif, SifImages } from './images.ts';
import { inspectSifFiles } from './inspect.ts';
import { ownEnvironment, startApptainer } from './start.ts';
import { bareTree, FOLDERS, gatherTools, PROGRAMS } from './tools.ts';

export type ApptainerRuntimeOptions = SetupOptions & {
  /** Paths of the instances' images, with `{instance_id}` or `{image}`. */
  templates: readonly string[];
  /** Conditions for the eviction of unpacked images; absent: images are never evicted. */
  room?: { watermark: number; pins: readonly string[] };
  /** Path of Apptainer; null: search in the usual folders. */
  command?: string | null;
  /** False: .sif files are unpacked even if they can be mounted. Default true. */
  mountSif?: boolean;
};

type Installation = Awaited<ReturnType<typeof findInstallation>>;

/** Throws UsageError for folders that cannot be used; `check` reports whether sandboxes start. */
export const apptainerRuntime = (options: ApptainerRuntimeOptions): Promise<Runtime> =>
  openRuntime('apptainer', options, async (setup) => {
    const { templates, room } = options;
    const { store } = setup;
    const installation = await findInstallation(setup, options.command ?? null);
    const { program, command } = installation;
    const mountable = options.mountSif !== false && (await canMountSif(setup.root));
    const images = new SifImages({ templates, store, command, mountable });
    return {
      placesByImage: false,
      check: (signal) => checkApptainer(setup, installation, templates, signal),
      inspection: inspectSifFiles(templates),
      ...(room ? { evictImages: () => evictUnpacked(store, imagesInUse(setup), room) } : {}),
      ensureImage: (name, signal, instanceId) => images.ensure(name, instanceId, signal),
      start: async (spec, signal) => startApptainer(setup, program, spec, images.find(spec.image), signal),
    };
  });

async function findInstallation(setup: RuntimeSetup, given: string | null) {
  const { root, folder, programs } = setup;
  const path = given ?? (await findProgram(PROGRAMS, FOLDERS));
  const program: Program = { ...setup, path: path ?? PROGRAMS[0], tools: join(folder, 'tools') };
  const problems = [...programs.problems];
  if (path === null)
    problems.push('there is no apptainer or singularity: install it, or name it with apptainer_command');
  if (problems.length === 0) {
    await gatherTools(program.tools, [programs.paths.bwrap as string, program.bash]).catch(
      (error: unknown) => {
        problems.push(errorMessage(error));
      },
    );
  }
  // Without root, Apptainer runs as root of a user namespace, because Apptainer refuses users without an account on the node.
  const command = [...(root ? [] : unshareMounts(root)), program.path];
  return { program, command, problems };
}

function checkApptainer(
  setup: RuntimeSetup,
  { program, command, problems }: Installation,
  templates: readonly string[],
  signal: AbortSignal,
): Promise<RuntimeCheck> {
  const { root, folder, scratchDir } = setup;
  const trial: Trial = {
    problems,
    version: () =>
      versionOf(command, folder).catch((error: unknown) => {
        throw new Error(
          `${program.path} does not run (${errorMessage(error)}): install it, or name it with apptainer_command`,
        );
      }),
    start: async () => {
      const tree = join(folder, 'trial');
      await bareTree(tree, program.bash);
      const image = { path: tree, config: EMPTY_CONFIG };
      return await startApptainer(setup, program, INTERNAL_SPEC, image, signal);
    },
    argv: [program.bash, '-c', 'echo works >/tmp/x && read -r word </tmp/x && [ "$word" = works ]'],
    explain: (message) => explain(message, scratchDir),
    hints: () => imageWarnings(root, templates),
  };
  return checkRuntime(setup, trial, signal);
}

async function imageWarnings(root: boolean, templates: readonly string[]): Promise<string[]> {
  const problems: string[] = [];
  if (!(await canMountSif(root))) {
    if ((await findProgram(['unsquashfs'], FOLDERS)) === null)
      problems.push(
        'unsquashfs is missing, by which .sif files are unpacked: apt-get install -y squashfs-tools',
      );
    problems.push(
      root
        ? '.sif files cannot be mounted (no /dev/loop-control, no /dev/fuse): each is unpacked once into images_dir'
        : 'without root each .sif file is unpacked once into images_dir: name unpacked folders in apptainer_images to save that',
    );
  }
  if (templates.length === 0)
    problems.push('apptainer_images is not set: only images named by their path are found');
  return problems;
}

async function versionOf(command: readonly string[], folder: string): Promise<string> {
  const [program = '', ...line] = command;
  const { stdout } = await run(program, [...line, '--version'], {
    env: { ...ownEnvironment(folder), LC_ALL: 'C' },
  });
  return stdout.trim();
}

function explain(message: string, scratchDir: string): string | null {
  if (/capability set/i.test(message))
    return `Apptainer asks for more capabilities than root has here (${message}): set "root default capabilities = file" in apptainer.conf`;
  if (/overlay/i.test(message))
    return `overlays do not work in ${scratchDir} (${message}): put scratch_dir on a local ext4, xfs or tmpfs; without root Linux 5.11 is needed`;
  return null;
}
