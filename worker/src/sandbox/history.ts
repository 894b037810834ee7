/**
 * Takes out of a repository what the agent may not see of its history, while the model writes its first answer, because it may take
 * seconds: the unreachable objects, or all of it. The agent's first command waits for the end of that.
 */
import type { Shell } from './command.ts';
import type { Container } from './runtime.ts';
import { pruneObjects, replaceHistory, type Snapshot } from './snapshot.ts';

/** Digests of images whose repository has no unreachable objects: their next containers skip the removal. */
export type CleanImages = Set<string>;

/** Resolves when the objects are gone; rejects with RolloutFailure `no_worktree` or `patch_take`. */
export function removeHistory(
  container: Container,
  snapshot: Snapshot,
  image: { digest: string; clean: CleanImages; history?: 'pruned' | 'replaced' | undefined },
  signal: AbortSignal,
): Promise<void> {
  const remove = async (): Promise<void> => {
    if (image.history === 'replaced') return replaceHistory(container, snapshot, signal);
    if (image.clean.has(image.digest)) return;
    if ((await pruneObjects(container, snapshot, signal)) === 'clean') image.clean.add(image.digest);
  };
  const done = remove();
  // The first caller that awaits it gets its failure; a rollout that ended earlier does not need it.
  done.catch(() => undefined);
  return done;
}

/** The shell, whose first command waits for the removal. */
export const afterPruning = (shell: Shell, pruned: Promise<void>): Shell => ({
  async run(command, options) {
    await pruned;
    return shell.run(command, options);
  },
  [Symbol.asyncDispose]: () => shell[Symbol.asyncDispose](),
});
