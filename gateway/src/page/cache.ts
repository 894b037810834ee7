/** Returns `make` with a cache of the `size` values that were used last. Rejected promises are not cached. */
export function createCache<T>(make: (key: string) => Promise<T>, size: number): (key: string) => Promise<T> {
  const values = new Map<string, Promise<T>>();
  return (key) => {
    const value = values.get(key) ?? make(key);
    // The map is ordered by last use.
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
