/** Prepares the container in which the verifier of a Harbor task runs. */
import { type Container, lossOr } from '@swefarm/sandbox';
import type { HarborTask } from '@swefarm/shared';
import { collectWork, copyArtifacts, restoreWork, runHooks } from '../harbor/collect.ts';
import { prepareVerifier, runSolution } from '../harbor/verify.ts';
import { changedSoFar } from './evidence.ts';
import type { CleanRunDeps, Ran, Work } from './work.ts';

/** Returns the work for a separate verifier. Runs the solution in a container of its own unless the work is known. */
export async function separateWork(work: Work, deps: CleanRunDeps): Promise<Pick<Work, 'collected'>> {
  const { collected, instance } = work;
  const { harbor } = instance;
  if (!harbor?.verifier.separate || collected) return {};
  const container = await deps.workContainer();
  try {
    await solve(container, harbor, work, deps);
    return { collected: await collectWork(container, harbor, deps) };
  } catch (error) {
    throw await lossOr(error, container, 'evaluation_lost');
  } finally {
    await deps.removals.remove(container);
  }
}

/** Runs the solution of a Harbor task, if there is one. */
async function solve(
  container: Container,
  task: HarborTask,
  { patch }: Pick<Work, 'patch'>,
  { solutionSeconds, timeoutSeconds, signal }: CleanRunDeps,
): Promise<void> {
  const timeoutMs = (solutionSeconds ?? timeoutSeconds) * 1000;
  if (patch !== '') await runSolution(container, task, patch, { timeoutMs, signal });
}

/**
 * Prepares the verifier, and adds the artifacts and the changed programs to `ran`. A shared verifier runs in the container of the solution
 * or of the agent. Throws errors of the runtime.
 */
export async function prepareTask(
  container: Container,
  task: HarborTask,
  work: Work,
  ran: Omit<Ran, 'disk'>,
  deps: CleanRunDeps,
): ReturnType<typeof prepareVerifier> {
  const { signal } = deps;
  const { facts } = ran;
  const { collected } = work;
  facts.patch_state = 'applied';
  if (task.verifier.separate) {
    ran.collected = collected ?? [];
    await restoreWork(container, ran.collected, signal);
  } else {
    await solve(container, task, work, deps);
    await container.killProcesses();
    Object.assign(facts, await changedSoFar(container, signal));
    // Hooks and artifacts use programs of the container, which the agent may have replaced.
    await runHooks(container, task, deps);
    ran.collected = await copyArtifacts(container, task, deps);
    await container.killProcesses();
  }
  return await prepareVerifier(container, task, signal);
}
