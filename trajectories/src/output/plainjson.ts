/** Converts the packed values of an artifact to plain JSON: numbers to lists, bytes to base64. `experts`: includes `routed_experts`. */
export const plainJson = (value: unknown, { experts = true } = {}): string =>
  JSON.stringify(value, (key, inner: unknown) => {
    if (key === 'routed_experts' && !experts) return undefined;
    // Expert ids are written as base64, because a list would have millions of numbers.
    if (inner instanceof Int8Array) {
      return Buffer.from(inner.buffer, inner.byteOffset, inner.byteLength).toString('base64');
    }
    return inner instanceof Int32Array || inner instanceof Float32Array ? Array.from(inner) : inner;
  });
