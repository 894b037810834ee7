/** A sandbox that is ready for an agent's first command. */
import type { InstanceEnvironment } from '@swefarm/shared';
import type { Shell } from './command.ts';
import type { Container, ContainerSpec, Runtime } from './runtime.ts';
import { setUp } from './setup.ts';
import { openPreparedShell, type ShellOptions } from './shell.ts';
import { prepareTree, pruneObjects, replaceHistory, type Snapshot } from './snapshot.ts';

/** Disposing the sandbox ends the shell, then the container. */
export type PreparedSandbox = AsyncDisposable & {
  container: Container;
  /** Null if the instance has no repository. */
  snapshot: Snapshot | null;
  /** The caller awaits `pruned` before the agent's first command. */
  shell: Shell;
  /** Resolves when the hidden part of the history is removed; rejects with RolloutFailure `no_worktree` or `patch_take`. */
  pruned: Promise<void>;
};

/**
 * Keys of plans whose repository has no unreachable objects: later sandboxes of these plans skip the removal. The image alone is not
 * the key, because the setup may reset the repository to an older commit, which leaves newer commits unreachable.
 */
export type CleanPlans = Set<string>;

type SandboxPlan = {
  spec: ContainerSpec;
  environment: InstanceEnvironment | undefined;
  activate: string;
};

type PreparationDeps = {
  runtime: Pick<Runtime, 'start'>;
  cleanPlans: CleanPlans;
  log: NonNullable<ShellOptions['log']>;
  signal: AbortSignal;
};

/**
 * Starts the container, runs the setup, takes the snapshot of the tree and opens the shell. The removal of hidden history may continue
 * after the return. Throws the RolloutFailures of the runtime, the setup, the shell and the snapshot.
 */
export async function prepareSandbox(
  plan: SandboxPlan,
  { runtime, cleanPlans, log, signal }: PreparationDeps,
): Promise<PreparedSandbox> {
  const { spec, environment, activate } = plan;
  await using stack = new AsyncDisposableStack();
  const container: Container = stack.use(await runtime.start(spec, signal));
  await setUp(container, environment, signal);
  const tree = prepareTree(container.workdir, environment);
  const { shell, prepared } = await openPreparedShell(container, { activate, log, signal }, tree);
  stack.use(shell);
  const snapshot = tree.snapshot(prepared);
  const removeHistory = async (): Promise<void> => {
    if (environment?.history === 'replaced') return replaceHistory(container, snapshot, signal);
    const key = planKey(plan);
    if (cleanPlans.has(key)) return;
    if ((await pruneObjects(container, snapshot, signal)) === 'clean') cleanPlans.add(key);
  };
  // The removal takes seconds, so it runs while the model writes its first answer.
  const pruned = removeHistory();
  // If the agent runs no command, nothing awaits `pruned`, and an error would be an unhandled rejection.
  pruned.catch(() => undefined);
  const owned = stack.move();
  return { container, snapshot, shell, pruned, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Returns the same key for plans that differ only in the owner, or in whether the image was pulled. */
function planKey({ spec, ...rest }: SandboxPlan): string {
  const { owner: _owner, image, ...given } = spec;
  return JSON.stringify([{ ...image, pulled: undefined }, given, rest]);
}
