/** Simulates a run: list scheduling of rollouts on equal slots, each rollout on the slot that is free first. */

/** Returns the time at which the last of these rollouts ends. @param durations in seconds, in the order in which rollouts start */
export function makespan(durations: Iterable<number>, slots: number): number {
  // A binary heap of the times at which the slots become free.
  const free = new Float64Array(slots);
  let last = 0;
  for (const duration of durations) {
    const ends = (free[0] ?? 0) + duration;
    if (ends > last) last = ends;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= slots) break;
      const right = left + 1;
      const child = right < slots && (free[right] ?? 0) < (free[left] ?? 0) ? right : left;
      if ((free[child] ?? 0) >= ends) break;
      free[at] = free[child] ?? 0;
      at = child;
    }
    free[at] = ends;
  }
  return last;
}

/** Returns the time that no order can beat: the larger of the work of one slot and the longest rollout. */
export const idealMakespan = (durations: readonly number[], slots: number): number =>
  durations.reduce((most, one) => Math.max(most, one), durations.reduce((sum, one) => sum + one, 0) / slots);

/** Returns a function that draws from the standard normal distribution; equal seeds draw equal numbers. */
export function createNormal(seed: number): () => number {
  let state = seed >>> 0;
  // mulberry32
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}
