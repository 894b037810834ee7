/** Assigns images to nodes by rendezvous hashing: a node that joins or leaves moves only the images of that node. */

/**
 * Returns the workers in the order in which they should run rollouts of `image`: by node, and within a node by worker, because the workers
 * of a node share its images. Every worker that knows the same workers computes the same order.
 */
export function ranking<T extends { worker: string; node: string }>(
  image: string,
  workers: readonly T[],
): T[] {
  const imageHash = hash(image);
  const weighted = workers.map((one) => ({
    one,
    node: mix(imageHash ^ hash(one.node)),
    worker: mix(imageHash ^ hash(one.worker)),
  }));
  weighted.sort(
    (a, b) =>
      b.node - a.node || (a.one.node < b.one.node ? -1 : a.one.node > b.one.node ? 1 : b.worker - a.worker),
  );
  return weighted.map(({ one }) => one);
}

/** FNV-1a hash, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}

/** Finaliser of MurmurHash3. */
function mix(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
