/** A map that evicts the least recently used entries when the weights of its values exceed a budget. */
export type Lru<V> = { get(key: string): V | undefined; set(key: string, value: V): void };

export function openLru<V extends object>(budget: number, weigh: (value: V) => number): Lru<V> {
  const values = new Map<string, V>();
  let weight = 0;
  return {
    get(key) {
      const value = values.get(key);
      if (value === undefined) return undefined;
      values.delete(key);
      values.set(key, value);
      return value;
    },
    set(key, value) {
      const before = values.get(key);
      if (before !== undefined) weight -= weigh(before);
      values.delete(key);
      values.set(key, value);
      weight += weigh(value);
      for (const [old, gone] of values) {
        if (weight <= budget || old === key) break;
        values.delete(old);
        weight -= weigh(gone);
      }
    },
  };
}
