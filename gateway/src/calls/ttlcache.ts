/** A cache whose values expire after a fixed time. */

export type TtlCache<Value> = {
  get(name: string): Value | undefined;
  set(name: string, value: Value): void;
  delete(name: string): void;
  entries(): Iterable<[string, Value]>;
};

/** @param now the clock, in ms since the epoch */
export function createTtlCache<Value>(lifeMs: number, now: () => number = Date.now): TtlCache<Value> {
  const known = new Map<string, { value: Value; until: number }>();
  // All lifetimes are equal, so the map is ordered by expiry.
  const drop = (): void => {
    for (const [name, { until }] of known) {
      if (until > now()) return;
      known.delete(name);
    }
  };
  return {
    get(name) {
      drop();
      return known.get(name)?.value;
    },
    set(name, value) {
      drop();
      known.delete(name);
      known.set(name, { value, until: now() + lifeMs });
    },
    delete: (name) => void known.delete(name),
    *entries() {
      drop();
      for (const [name, { value }] of known) yield [name, value];
    },
  };
}
