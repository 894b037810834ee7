/** The container in which a program of the dataset reads the outcomes of an attempt. */
import type { Container, ReadyImage } from '@swefarm/sandbox';
import { type InstancePlan, RolloutFailure } from '@swefarm/shared';
import { PROGRAM_LIMITS } from '../evaluation/program.ts';
import { limitsOf, ownerOf } from './containers.ts';
import type { Task } from './context.ts';

/**
 * Checks before the agent starts that this worker can run the plan's program.
 *
 * @throws RolloutFailure `no_parser_image`, or `sandbox_refused` if the runtime does not isolate
 */
export function requireProgram({ outcomes }: InstancePlan, { services }: Task): void {
  if (outcomes.from !== 'program') return;
  const { runtime, config, identity } = services;
  const where = `worker ${identity.worker} on ${identity.node}`;
  if (!runtime.isolates) {
    const why = 'outcomes are read by a program of the dataset, which needs a runtime that isolates';
    throw new RolloutFailure('sandbox_refused', `${where}: ${why}, and this is ${runtime.name}`);
  }
  if (outcomes.image === 'tools' && config.parser_image === null)
    throw new RolloutFailure(
      'no_parser_image',
      `${where} has no parser_image: set parser_image (SWEFARM_PARSER_IMAGE) to an image with python3; see docs/running.md`,
    );
}

/** Starts a new container with small limits, without network. `instance`: the image to run; null: parser_image. Throws runtime errors. */
export async function startProgram(task: Task, instance: ReadyImage | null): Promise<Container> {
  const image = instance ?? (await toolsImage(task));
  const own = limitsOf(task);
  const limits = {
    cpus: Math.min(own.cpus, PROGRAM_LIMITS.cpus),
    memoryBytes: Math.min(own.memoryBytes, PROGRAM_LIMITS.memoryBytes),
    pids: Math.min(own.pids, PROGRAM_LIMITS.pids),
    diskBytes: own.diskBytes,
  };
  const where = { workdir: '/', owner: ownerOf(task), env: {} };
  return task.services.runtime.start(
    { image, role: 'evaluation', network: 'none', limits, ...where },
    task.signal,
  );
}

async function toolsImage({ services, signal }: Task): Promise<ReadyImage> {
  const name = services.config.parser_image ?? '';
  try {
    return await services.runtime.ensureImage(name, signal);
  } catch (error) {
    const ofImage =
      error instanceof RolloutFailure &&
      (error.failureClass === 'image_not_found' || error.failureClass === 'image_pull');
    if (!ofImage) throw error;
    throw new RolloutFailure(error.failureClass, `parser_image ${name}: ${error.message}`, { cause: error });
  }
}
