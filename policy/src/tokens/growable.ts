/** Typed arrays that double when full, so that appending a token has constant amortised cost. */

export type GrowableArray<T extends Int32Array | Float32Array> = {
  readonly length: number;
  push(items: T): void;
  all(): T;
};

const FIRST = 256;

export const growableIds = (): GrowableArray<Int32Array> => growing((length) => new Int32Array(length));
export const growableLogProbs = (): GrowableArray<Float32Array> =>
  growing((length) => new Float32Array(length));

function growing<T extends Int32Array | Float32Array>(make: (length: number) => T): GrowableArray<T> {
  let items = make(FIRST);
  let length = 0;
  return {
    get length() {
      return length;
    },
    push(more) {
      const needed = length + more.length;
      if (needed > items.length) {
        const larger = make(Math.max(needed, 2 * items.length));
        larger.set(items.subarray(0, length));
        items = larger;
      }
      items.set(more, length);
      length = needed;
    },
    all: () => items.slice(0, length) as T,
  };
}
