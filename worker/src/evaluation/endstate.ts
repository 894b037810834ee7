/** Determines the state of a container after its tests. */
import type { Container, ContainerState, ExecResult } from '@swefarm/sandbox';
import { poll, RolloutFailure } from '@swefarm/shared';

/** Exit codes of processes killed by SIGKILL (128 + 9) and SIGTERM (128 + 15). */
const KILLED = 137;
const TERMINATED = 143;
const CONTAINER_END_MS = 2_000;

/** Throws RolloutFailure `evaluation_lost` if the container does not run. */
export function requireRunning(state: ContainerState): void {
  if (state !== 'running')
    throw new RolloutFailure('evaluation_lost', `the evaluation container is ${state}`);
}

/**
 * Returns the state of the container, which may end shortly after its tests: a scheduler sends TERM to all processes of a job, and an
 * engine reports the end of a container later than the end of its processes.
 */
export async function stateAfter(container: Container, { timedOut, exitCode, survived }: ExecResult) {
  if (timedOut || survived) return 'running';
  // Some engines report an exit code even if the container was killed during the tests.
  if (exitCode === null || survived === false) return container.state();
  if (exitCode !== KILLED && exitCode !== TERMINATED) return 'running';
  const ended = async (): Promise<ContainerState | null> => {
    const state = await container.state();
    return state === 'running' ? null : state;
  };
  return (await poll(ended, { pauseMs: 50, withinMs: CONTAINER_END_MS })) ?? 'running';
}
