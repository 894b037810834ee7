/** An artifact's packed values as plain JSON: numbers as lists, bytes as base64. */
export const plainJson = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) => {
    // A list would have millions of experts.
    if (inner instanceof Int8Array) {
      return Buffer.from(inner.buffer, inner.byteOffset, inner.byteLength).toString('base64');
    }
    return inner instanceof Int32Array || inner instanceof Float32Array ? Array.from(inner) : inner;
  });
