export type Spread = { least: number; q1: number; median: number; q3: number; most: number } | null;

/** Returns minimum, quartiles (nearest rank) and maximum; null for an empty list. */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) return null;
  const order = values.toSorted((a, b) => a - b);
  const at = (share: number): number => order[Math.max(0, Math.ceil(share * order.length) - 1)] ?? 0;
  return { least: at(0), q1: at(0.25), median: at(0.5), q3: at(0.75), most: at(1) };
}
