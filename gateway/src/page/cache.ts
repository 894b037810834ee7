/** The last few values that are expensive to make: a page asks about the same rollout several times. */

/** Makes a value once for equal keys that come together or soon after one another; the last `size` are kept, failures are not. */
export function createCache<T>(make: (key: string) => Promise<T>, size: number): (key: string) => Promise<T> {
  const values = new Map<string, Promise<T>>();
  return (key) => {
    const value = values.get(key) ?? make(key);
    // The map keeps its keys in the order of use.
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
