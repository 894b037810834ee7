/** Seeded numbers that depend on the request, not on the order of requests: repeated runs have the same delays and faults. */

/** FNV-1a over UTF-16 units; 32 bits, unsigned. */
export function hash32(text: string, seed = 0): number {
  let hash = (0x811c9dc5 ^ seed) >>> 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** A number in [0, 1) for a pair of integers. */
export function unit(seed: number, index: number): number {
  let mixed = (seed + Math.imul(index + 1, 0x9e3779b9)) | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
}

/** Standard normal, by Box and Muller. */
export function normal(seed: number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - unit(seed, 0)));
  return radius * Math.cos(2 * Math.PI * unit(seed, 1));
}
