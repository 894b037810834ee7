/** Splits a flat reply, such as that of a hash, into pairs. */
export const pairsOf = <T>(flat: readonly T[]): [T, T][] =>
  flat.flatMap((one, at): [T, T][] => (at % 2 === 0 ? [[one, flat[at + 1] as T]] : []));

/** Yields the pairs of a hash or a sorted set in parts. @param stream stream of HSCAN or ZSCAN, which may return a pair twice */
export async function* pairsIn(stream: AsyncIterable<string[]>): AsyncGenerator<[string, string][]> {
  for await (const flat of stream) yield pairsOf(flat);
}
