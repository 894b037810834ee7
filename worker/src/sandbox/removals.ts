/** Containers on their way out: removed beside further work, so that no rollout waits for a removal, and gone before the worker is. */

export type Removals = {
  /** Starts the removal; waits only while so many are under way that the node would fill up with what nobody uses. */
  remove(container: AsyncDisposable): Promise<void>;
  /** Resolves when every removal so far has ended. */
  finished(): Promise<void>;
};

const MOST_UNDER_WAY = 16;

/** What cannot be removed was logged by its runtime and is the reaper's. */
export function createRemovals(most = MOST_UNDER_WAY): Removals {
  const underWay = new Set<Promise<unknown>>();
  return {
    async remove(container) {
      const removal: Promise<unknown> = Promise.resolve(container[Symbol.asyncDispose]()).then(
        () => void underWay.delete(removal),
        () => void underWay.delete(removal),
      );
      underWay.add(removal);
      while (underWay.size > most) await Promise.race(underWay);
    },
    async finished() {
      await Promise.all(underWay);
    },
  };
}
