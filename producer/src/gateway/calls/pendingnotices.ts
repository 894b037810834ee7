/**
 * What Redis was to be told and was not, because it was away: told again with each beat, and before anything that depends on it.
 * Without, a call would stay held by a gateway that waits for it no more, and its rollout would run to the end for nobody.
 */

export type PendingNotices = {
  /** Does it now, else as soon as it can be done; never throws. Those of one `key` are done in their order. */
  owe(key: string, act: () => Promise<void>): Promise<void>;
  /** Everything owed for a key is done when this resolves. Throws what still stands in the way. */
  settle(key: string): Promise<void>;
  /** Tries all of them once more. */
  settleAll(): Promise<void>;
};

export function createPendingNotices(): PendingNotices {
  const owed = new Map<string, { acts: (() => Promise<void>)[]; paying: Promise<void> | null }>();
  const pay = async (key: string, acts: (() => Promise<void>)[]): Promise<void> => {
    for (let [act] = acts; act !== undefined; [act] = acts) {
      await act();
      acts.shift();
    }
    owed.delete(key);
  };
  const settle = (key: string): Promise<void> => {
    const debt = owed.get(key);
    if (!debt) return Promise.resolve();
    debt.paying ??= pay(key, debt.acts).finally(() => {
      debt.paying = null;
    });
    return debt.paying;
  };
  return {
    settle,
    async owe(key, act) {
      const debt = owed.get(key) ?? { acts: [], paying: null };
      owed.set(key, debt);
      debt.acts.push(act);
      await settle(key).catch(() => undefined);
    },
    async settleAll() {
      for (const key of [...owed.keys()]) await settle(key).catch(() => undefined);
    },
  };
}
