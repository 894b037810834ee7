/**
 * A sandbox that is ready for an agent's first command, and what it is made of. Nothing in it depends on the rollout that uses it: a
 * sandbox may be made before anybody knows which rollout that will be.
 */
import type { InstanceEnvironment } from '@swefarm/shared';
import type { Shell } from './command.ts';
import { type CleanPlans, removeHistory } from './history.ts';
import type { Container, ContainerSpec, Owner, Runtime } from './runtime.ts';
import { setUp } from './setup.ts';
import { openPreparedShell, type ShellOptions } from './shell.ts';
import { prepareTree, type Snapshot } from './snapshot.ts';

/** Everything that decides what is in the sandbox, except its owner. */
export type SandboxPlan = {
  spec: Omit<ContainerSpec, 'owner'>;
  /** What the instance's record asks for: setup, hidden paths, history. */
  environment: InstanceEnvironment | undefined;
  /** Shell text that activates the environment. */
  activate: string;
};

/** Equal for plans whose sandboxes cannot be told apart, and for no others. */
export function planKey({ spec, environment, activate }: SandboxPlan): string {
  const { image, role, network, limits, workdir, env } = spec;
  const { cpus, memoryBytes, pids, diskBytes } = limits;
  return JSON.stringify([
    ...[image.name, image.digest, image.ref, role, network, cpus, memoryBytes, pids, diskBytes, workdir],
    ...[Object.entries(env), environment ?? null, activate],
  ]);
}

/** Disposing it ends the shell, then the container. */
export type PreparedSandbox = AsyncDisposable & {
  container: Container;
  snapshot: Snapshot;
  /** Its commands do not wait for `pruned`: see {@link afterPruning}. */
  shell: Shell;
  /** Resolves when what the agent may not see of the history is gone; rejects with RolloutFailure `no_worktree` or `patch_take`. */
  pruned: Promise<void>;
};

export type PreparationDeps = {
  runtime: Pick<Runtime, 'start'>;
  owner: Owner;
  cleanPlans: CleanPlans;
  log: NonNullable<ShellOptions['log']>;
  signal: AbortSignal;
};

/**
 * Starts the container, sets it up, takes the snapshot of its tree and opens the shell; the history is removed meanwhile and after it.
 * Throws RolloutFailure as the runtime, the setup, the shell and the snapshot do.
 */
export async function prepareSandbox(plan: SandboxPlan, deps: PreparationDeps): Promise<PreparedSandbox> {
  const { environment, activate, spec } = plan;
  const { runtime, owner, cleanPlans, log, signal } = deps;
  await using stack = new AsyncDisposableStack();
  const container: Container = stack.use(await runtime.start({ ...spec, owner }, signal));
  await setUp(container, environment, signal);
  const { workdir } = container;
  const tree = prepareTree(workdir, environment);
  const { shell, prepared } = await openPreparedShell(
    container,
    { workdir, activate, env: {}, log, signal },
    tree,
  );
  stack.use(shell);
  const snapshot = tree.snapshot(prepared);
  const known = { key: planKey(plan), clean: cleanPlans, history: environment?.history };
  const pruned = removeHistory(container, snapshot, known, signal);
  const owned = stack.move();
  return { container, snapshot, shell, pruned, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
