/** Returns a cached `make`: the last `size` values stay in memory, rejected ones do not. */
export function createCache<T>(make: (key: string) => Promise<T>, size: number): (key: string) => Promise<T> {
  const values = new Map<string, Promise<T>>();
  return (key) => {
    const value = values.get(key) ?? make(key);
    // Orders the map by use.
    values.delete(key);
    values.set(key, value);
    value.catch(() => values.delete(key));
    for (const oldest of values.keys()) {
      if (values.size <= size) break;
      values.delete(oldest);
    }
    return value;
  };
}
