/** Removes containers in the background. The worker exits after the last removal. */

export type Removals = {
  /** Starts the removal; waits only when too many are under way, because unused containers would fill the node. */
  remove(container: AsyncDisposable): Promise<void>;
  /** Resolves when all removals so far have ended. */
  finished(): Promise<void>;
};

const MOST_UNDER_WAY = 16;

/** The runtime logs failed removals, and the reaper repeats them. */
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
