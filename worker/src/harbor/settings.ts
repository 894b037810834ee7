/** Applies the settings of a Harbor task to one rollout: limits, network, image and users. */

import type { Duplex } from 'node:stream';
import type { Container, ReadyImage, Runtime } from '@swefarm/sandbox';
import {
  BUILT_IMAGES,
  type HarborTask,
  type Instance,
  RolloutFailure,
  type RunRecord,
} from '@swefarm/shared';

/**
 * Returns the run with the limits and the network of the task. The smaller of the two time limits applies. Throws RolloutFailure
 * `instance_invalid` if the run requires a patch.
 */
export function runOfTask(run: RunRecord, { harbor }: Pick<Instance, 'harbor'>): RunRecord {
  if (!harbor) return run;
  const { agent, sandbox, evaluation } = run;
  if (agent.max_submits > 1 || agent.type === 'external' || agent.patch_source === 'submission')
    throw new RolloutFailure(
      'instance_invalid',
      'a Harbor task yields no patch: sessions, feedback on submits and printed patches are not possible',
    );
  return {
    ...run,
    agent: { ...agent, time_limit: Math.min(agent.time_limit, harbor.agent.timeout ?? agent.time_limit) },
    sandbox: {
      ...sandbox,
      agent_network: networkOf(harbor.network, run),
      eval_network: networkOf(harbor.verifier.separate?.network ?? harbor.network, run),
      cpus: harbor.limits.cpus ?? sandbox.cpus,
      memory_bytes: harbor.limits.memory_bytes ?? sandbox.memory_bytes,
      disk_bytes: harbor.limits.disk_bytes ?? sandbox.disk_bytes,
    },
    evaluation: { ...evaluation, grade_once: 'off' },
  };
}

const networkOf = (network: HarborTask['network'], { sandbox }: Pick<RunRecord, 'sandbox'>) =>
  network === 'no-network' ? 'none' : sandbox.agent_network;

/**
 * Returns the settings of the evaluation container. `run` comes from {@link runOfTask}; limits of a separate verifier replace the limits of
 * the agent's container.
 */
export function runOfVerifier<R extends Pick<RunRecord, 'sandbox'>>(
  run: R,
  { harbor }: Pick<Instance, 'harbor'>,
): R {
  const limits = harbor?.verifier.separate?.limits;
  return limits ? { ...run, sandbox: { ...run.sandbox, ...limits } } : run;
}

/** Minimum limits of a build step. The task can raise them. Harbor has no limits, and a compiler needs more than most tasks. */
const BUILD_LIMITS = { cpus: 2, memoryBytes: 4 * 1024 ** 3 };

type Images = Pick<Runtime, 'name' | 'build' | 'ensureImage'>;

/**
 * Returns the image of an instance. Builds the image of a Harbor task if the node does not have the image. Throws RolloutFailure
 * `image_not_built` if the runtime cannot build images, and the errors of the runtime.
 */
export const imageOf = (
  { image, instance_id, harbor }: Pick<Instance, 'image' | 'instance_id' | 'harbor'>,
  runtime: Images,
  signal: AbortSignal,
): Promise<ReadyImage> => {
  const build = harbor?.build && ({ ...harbor.build, folder: 'environment' } as const);
  return readyImage({ image, instance_id, harbor, build }, runtime, signal);
};

/** Returns the image of the separate verifier, or null if the verifier shares the agent's container. Throws the errors of {@link imageOf}. */
export async function verifierImageOf(
  { instance_id, harbor }: Pick<Instance, 'instance_id' | 'harbor'>,
  runtime: Images,
  signal: AbortSignal,
): Promise<ReadyImage | null> {
  const { image, build } = harbor?.verifier.separate ?? {};
  return image === undefined ? null : readyImage({ image, instance_id, harbor, build }, runtime, signal);
}

type Build = NonNullable<NonNullable<HarborTask['verifier']['separate']>['build']>;

/** The digest of a built image is the digest of the folder, because the image's id differs on each node. */
async function readyImage(
  given: Pick<Instance, 'image' | 'instance_id' | 'harbor'> & { build: Build | undefined },
  runtime: Images,
  signal: AbortSignal,
): Promise<ReadyImage> {
  const { image, instance_id, harbor, build } = given;
  if (!harbor || !build) return await runtime.ensureImage(image, signal, instance_id);
  if (!runtime.build)
    throw new RolloutFailure(
      'image_not_built',
      `the runtime ${runtime.name} cannot build images: set ${build.folder === 'tests' ? 'verifier.' : ''}environment.docker_image`,
    );
  const own = build.folder === 'tests' ? harbor.verifier.separate?.limits : harbor.limits;
  const limits = {
    cpus: Math.max(BUILD_LIMITS.cpus, own?.cpus ?? 0),
    memoryBytes: Math.max(BUILD_LIMITS.memoryBytes, own?.memory_bytes ?? 0),
  };
  const files = taskFiles(harbor, `${build.folder}/`);
  await runtime.build({ name: image, files, timeoutMs: build.timeout * 1000, limits }, signal);
  const built = await runtime.ensureImage(image, signal, instance_id);
  return { ...built, digest: `sha256:${image.slice(BUILT_IMAGES.length)}` };
}

/** Returns the files below a folder of the task. The keys are paths relative to the folder. */
export function taskFiles({ files }: HarborTask, folder: `${string}/`) {
  const found = new Map<string, { content: Buffer; executable: boolean }>();
  for (const [path, { base64, executable }] of Object.entries(files))
    if (path.startsWith(folder))
      found.set(path.slice(folder.length), { content: Buffer.from(base64, 'base64'), executable });
  return found;
}

/** Returns the container with `user` as the default user of commands. */
export function asUser(container: Container, user: string): Container {
  const own: Pick<Container, 'open' | 'exec'> = {
    open: (argv: readonly string[], signal: AbortSignal): Promise<Duplex> =>
      container.open(argv, signal, user),
    exec: (argv, options) => container.exec(argv, { user, ...options }),
  };
  return new Proxy(container, {
    get(target, key) {
      if (key === 'open' || key === 'exec') return own[key];
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Returns the user that the task names for a phase, or else the user of the image. */
export const userOf = (phase: { user?: string | undefined }, image: ReadyImage): string =>
  phase.user ?? image.user ?? 'root';
