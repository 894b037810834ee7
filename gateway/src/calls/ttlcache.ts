/** Values that this process read from Redis and relies on for a while. */

export type TtlCache<Value> = {
  get(name: string): Value | undefined;
  set(name: string, value: Value): void;
  delete(name: string): void;
  entries(): Iterable<[string, Value]>;
};

/** Each value lives for `lifeMs` by the clock `now` (ms since the epoch). */
export function createTtlCache<Value>(lifeMs: number, now: () => number = Date.now): TtlCache<Value> {
  const known = new Map<string, { value: Value; until: number }>();
  /** All live equally long and the map keeps their order: the oldest come first. */
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
