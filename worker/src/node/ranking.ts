/** Which node an image belongs to: rendezvous hashing, so that a node that joins or leaves moves only its own images. */

export type ImageNode = { worker: string; node: string };

/**
 * Workers in the order in which they should run rollouts of `image`: by node, and within a node (whose workers share their images)
 * by worker. Every worker that knows the same workers computes the same order.
 */
export function ranking<T extends ImageNode>(image: string, places: readonly T[]): T[] {
  const of = hash(image);
  const weighed = places.map((place) => ({
    place,
    node: mix(of ^ hash(place.node)),
    worker: mix(of ^ hash(place.worker)),
  }));
  weighed.sort(
    (a, b) =>
      b.node - a.node ||
      (a.place.node < b.place.node ? -1 : a.place.node > b.place.node ? 1 : b.worker - a.worker),
  );
  return weighed.map(({ place }) => place);
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}

/** The finaliser of MurmurHash3: every input bit affects every output bit. */
function mix(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
