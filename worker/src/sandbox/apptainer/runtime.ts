/**
 * Containers of Apptainer (or Singularity), where no engine is allowed: clusters. It mounts the image and makes the namespaces;
 * everything else is held as the light runtime's sandboxes are. What is isolated and limited how: docs/apptainer.md.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errorMessage } from '@swefarm/shared';
import { EMPTY_CONFIG } from '../../images/config.ts';
import { makeRoom } from '../../images/room.ts';
import { openImageStore } from '../../images/store.ts';
import { diskFree } from '../free.ts';
import { INTERNAL_SPEC } from '../internal.ts';
import { explainNamespaces, limitsOf, makeBase, warnings } from '../namespaces/host.ts';
import { unshareMounts } from '../namespaces/launch.ts';
import { requireMountableFolder } from '../namespaces/mounts.ts';
import { readRecords, removeNameless } from '../namespaces/records.ts';
import { imagesOf, type RuntimeSetup, type SetupLog, setUpRuntime } from '../namespaces/setup.ts';
import type { Runtime } from '../runtime.ts';
import type { Program } from './arguments.ts';
import { findCommand, PROGRAMS } from './command.ts';
import { canMountSif, imageSource } from './images.ts';
import { inspectImages } from './inspect.ts';
import { ownEnvironment, startApptainer } from './start.ts';
import { bareTree, gatherTools } from './tools.ts';

const run = promisify(execFile);

export type ApptainerRuntimeOptions = {
  /** Paths with `{instance_id}` or `{image}`: where the images of instances are. */
  templates: readonly string[];
  /** Unpacked images, where .sif files cannot be mounted; kept, and shared by the workers of this user on this node. */
  imagesDir: string;
  /** When unpacked images go; default: none is removed. */
  room?: { watermark: number; pins: readonly string[] };
  /** Folders of running sandboxes; on a local file system that can be the upper layer of an overlay. */
  scratchDir: string;
  /** Path of the program, when it is not where programs are. */
  command?: string | null;
  /** False: limits are left to the watchdog even where control groups could be made. Default true. */
  cgroups?: boolean;
  /** False: .sif files are unpacked even where they could be mounted. Default true. */
  mountSif?: boolean;
  log?: SetupLog;
};

/** Throws UsageError for folders that cannot be used; whether sandboxes start is told by `check`. */
export async function apptainerRuntime(options: ApptainerRuntimeOptions): Promise<Runtime> {
  requireMountableFolder(options.imagesDir);
  const { scratchDir, log } = options;
  return setUpRuntime({ scratchDir, cgroups: options.cgroups !== false, log }, (setup) =>
    openApptainer(setup, options),
  );
}

async function openApptainer(setup: RuntimeSetup, options: ApptainerRuntimeOptions): Promise<Runtime> {
  const { root, folder, programs } = setup;
  const path = options.command ?? (await findCommand(PROGRAMS));
  const program: Program = {
    path: path ?? PROGRAMS[0],
    root,
    bash: programs.paths.bash ?? '/bin/bash',
    tools: join(folder, 'tools'),
    base: await makeBase(folder),
  };
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
  // As root of a user namespace even without root: a user whom the node's accounts do not know is refused otherwise.
  const command = [...(root ? [] : unshareMounts(root)), program.path];
  const store = await openImageStore(options.imagesDir);
  const { room } = options;
  const images = imageSource({
    templates: options.templates,
    store,
    command,
    mountable: options.mountSif !== false && (await canMountSif(root)),
  });

  /** What went wrong with a sandbox of nothing but a shell; null when it works. */
  const trial = async (signal: AbortSignal): Promise<string | null> => {
    const tree = join(folder, 'trial');
    try {
      await bareTree(tree, program.bash);
      const image = { path: tree, config: EMPTY_CONFIG };
      await using container = await startApptainer(setup, program, INTERNAL_SPEC, image, signal);
      const line = [program.bash, '-c', 'echo works >/tmp/x && read -r word </tmp/x && [ "$word" = works ]'];
      const result = await container.exec(line, { timeoutMs: 10_000, maxOutputBytes: 1_000, signal });
      return result.exitCode === 0 ? null : result.output.toString().trim();
    } catch (error) {
      signal.throwIfAborted();
      return errorMessage(error);
    }
  };

  return {
    name: 'apptainer',
    isolates: true,
    placesByImage: false,
    async check(signal) {
      const limits = limitsOf(setup.cgroups, root);
      const found = [...problems];
      let version: string | null = null;
      if (found.length === 0) {
        version = await versionOf(command, folder).catch((error: unknown) => {
          found.push(`${program.path} does not run: ${errorMessage(error)}`);
          return null;
        });
      }
      if (found.length === 0) {
        const failed = await trial(signal);
        if (failed) found.push(explain(failed, root, options.scratchDir));
      }
      const usable = found.length === 0;
      if (usable) {
        found.push(...warnings(limits, root));
        if (!(await canMountSif(root))) {
          if ((await findCommand(['unsquashfs'])) === null)
            found.push(
              'unsquashfs is missing, by which .sif files are unpacked: apt-get install -y squashfs-tools',
            );
          found.push(
            root
              ? '.sif files cannot be mounted (no /dev/loop-control, no /dev/fuse): each is unpacked once into images_dir'
              : 'without root each .sif file is unpacked once into images_dir: name unpacked folders in apptainer_images to save that',
          );
        }
        if (options.templates.length === 0)
          found.push('apptainer_images is not set: only images named by their path are found');
      }
      return { usable, version, limits, problems: found };
    },
    inspection: inspectImages(options.templates),
    ...(room ? { evictImages: () => makeRoom({ store, ...room, inUse: imagesOf(setup.containers) }) } : {}),
    ensureImage: (name, signal, instanceId) => images.ensure(name, instanceId, signal),
    start: async (spec, signal) => startApptainer(setup, program, spec, images.find(spec.image), signal),
    listOwned: () => readRecords(options.scratchDir, 'apptainer'),
    sweep: () => removeNameless(options.scratchDir, options.log),
    diskFree: () => diskFree(options.scratchDir),
    remove: setup.remove,
    [Symbol.asyncDispose]: () => setup[Symbol.asyncDispose](),
  };
}

async function versionOf(command: readonly string[], folder: string): Promise<string> {
  const [program = '', ...line] = command;
  const { stdout } = await run(program, [...line, '--version'], {
    env: { ...ownEnvironment(folder), LC_ALL: 'C' },
  });
  return stdout.trim();
}

function explain(message: string, root: boolean, scratchDir: string): string {
  const namespaces = explainNamespaces(message, root);
  if (namespaces) return namespaces;
  if (/capability set/i.test(message))
    return `Apptainer asks for more capabilities than root has here (${message}): set "root default capabilities = file" in apptainer.conf`;
  if (/overlay/i.test(message))
    return `overlays do not work in ${scratchDir} (${message}): put scratch_dir on a local ext4, xfs or tmpfs; without root Linux 5.11 is needed`;
  return `a trial sandbox did not start: ${message}`;
}
