/** Removes containers in the background: no rollout waits for a removal, and the worker exits only after the last one. */

export type Removals = {
  /** Starts the removal; waits only when so many are under way that unused containers would fill the node. */
  remove(container: AsyncDisposable): Promise<void>;
  /** Resolves when every removal so far has ended. */
  finished(): Promise<void>;
};

const MOST_UNDER_WAY = 16;

/** The runtime logs what it cannot remove, and the reaper tries again. */
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
