/** Starts the agent's sandbox of a Harbor task. The task may have no repository, so the sandbox has no snapshot and yields no patch. */
import {
  type Container,
  type ContainerSpec,
  openShell,
  type PreparedSandbox,
  type Runtime,
} from '@swefarm/sandbox';
import type { HarborTask } from '@swefarm/shared';
import type { Logger } from 'pino';
import { asUser, userOf } from './settings.ts';
import { startTask } from './start.ts';

/** Starts the container and opens a shell as the agent's user. Throws the RolloutFailures of `start`, `startTask` and `openShell`. */
export async function prepareTaskSandbox(
  spec: ContainerSpec,
  task: HarborTask,
  { runtime, log, signal }: { runtime: Pick<Runtime, 'start'>; log: Logger; signal: AbortSignal },
): Promise<PreparedSandbox> {
  const { name: image, entrypoint } = spec.image;
  // Harbor runs the entrypoint, and swefarm does not. A task whose entrypoint starts a server therefore fails.
  if (entrypoint) log.warn({ image, entrypoint }, 'the ENTRYPOINT of the image does not run');
  await using stack = new AsyncDisposableStack();
  const container: Container = stack.use(await runtime.start(spec, signal));
  await startTask(container, task, signal);
  const user = userOf(task.agent, spec.image);
  const shell = stack.use(await openShell(asUser(container, user), { activate: '', log, signal }));
  const owned = stack.move();
  return {
    ...{ container, snapshot: null, shell, pruned: Promise.resolve() },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
