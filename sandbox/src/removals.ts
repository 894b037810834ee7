/** Removes containers in the background. The worker exits after the last removal. */

export type Removals = {
  /** Starts the removal. Waits only if too many removals are under way, because unused containers would fill the node. */
  remove(container: AsyncDisposable): Promise<void>;
  /** Resolves when all removals that have been started so far have ended. */
  finished(): Promise<void>;
};

const MOST_UNDER_WAY = 16;

/** Creates the list of removals. Failures are ignored, because the runtime logs them and the reaper repeats the removal. */
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
