/**
 * Removes the unreachable objects of a repository, which may take seconds, while the model writes its first answer: the first command of
 * the agent waits for the end of the removal.
 */
import type { Shell } from './command.ts';
import type { Container } from './runtime.ts';
import { pruneObjects, type Snapshot } from './snapshot.ts';

/** Digests of images whose repository has no unreachable objects: nothing is to be removed in their next container. */
export type CleanImages = Set<string>;

type HistoryRemoval = {
  /** The shell, whose first command waits. */
  shell: Shell;
  /** Resolves when the objects are gone; rejects with RolloutFailure `no_worktree` or `patch_take`. */
  done: Promise<void>;
};

export function removeHistory(
  container: Container,
  snapshot: Snapshot,
  shell: Shell,
  image: { digest: string; clean: CleanImages },
  signal: AbortSignal,
): HistoryRemoval {
  const remove = async (): Promise<void> => {
    if (image.clean.has(image.digest)) return;
    if ((await pruneObjects(container, snapshot, signal)) === 'clean') image.clean.add(image.digest);
  };
  const done = remove();
  // Its failure reaches whoever waits first; a rollout that ended earlier does not need it.
  done.catch(() => undefined);
  return {
    done,
    shell: {
      async run(command, options) {
        await done;
        return shell.run(command, options);
      },
      [Symbol.asyncDispose]: () => shell[Symbol.asyncDispose](),
    },
  };
}
