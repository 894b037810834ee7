/** Containers on their way out: removed beside further work, so that no rollout waits for a removal, and gone before the worker is. */

export type Leaving = {
  /** Starts the removal; waits only while so many are under way that the node would fill up with what nobody uses. */
  remove(container: AsyncDisposable): Promise<void>;
  /** Resolves when every removal so far has ended. */
  settled(): Promise<void>;
};

const MOST_UNDER_WAY = 16;

/** What cannot be removed was logged by its runtime and is the reaper's. */
export function createLeaving(most = MOST_UNDER_WAY): Leaving {
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
    async settled() {
      await Promise.all(underWay);
    },
  };
}
