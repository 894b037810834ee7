/**
 * Takes out of a repository what the agent may not see of its history, while the model writes its first answer, because it may take
 * seconds: the unreachable objects, or all of it. The agent's first command waits for the end of that.
 */
import type { Container } from './runtime.ts';
import { pruneObjects, replaceHistory, type Snapshot } from './snapshot.ts';

/**
 * Keys of plans (`planKey` in agentsandbox.ts) whose repository has no unreachable objects: their next sandboxes skip the removal. An image alone decides
 * nothing: its setup may reset the repository to an older commit, which leaves the newer ones unreachable.
 */
export type CleanPlans = Set<string>;

/** Resolves when the objects are gone; rejects with RolloutFailure `no_worktree` or `patch_take`. */
export function removeHistory(
  container: Container,
  snapshot: Snapshot,
  plan: { key: string; clean: CleanPlans; history?: 'pruned' | 'replaced' | undefined },
  signal: AbortSignal,
): Promise<void> {
  const remove = async (): Promise<void> => {
    if (plan.history === 'replaced') return replaceHistory(container, snapshot, signal);
    if (plan.clean.has(plan.key)) return;
    if ((await pruneObjects(container, snapshot, signal)) === 'clean') plan.clean.add(plan.key);
  };
  const done = remove();
  // The first caller that awaits it gets its failure; a rollout that ended earlier does not need it.
  done.catch(() => undefined);
  return done;
}
