/** Round figures for an axis, from at most the least to at least the highest. */
export function ticksOf(least: number, most: number): number[] {
  const span = most - least || 1;
  const power = 10 ** Math.floor(Math.log10(span / 4));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => span / one <= 5) ?? 10 * power;
  const first = Math.floor(least / step);
  const count = Math.ceil((least + span) / step - 1e-9) - first;
  // Products of whole numbers: sums of steps would drift.
  return Array.from({ length: count + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}
