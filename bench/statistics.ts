/** Medians, percentiles and ratios of samples. */

/** Nearest rank; NaN for no samples. */
export function percentile(samples: readonly number[], percent: number): number {
  if (samples.length === 0) return Number.NaN;
  const sorted = [...samples].sort((a, b) => a - b);
  const rank = Math.ceil((percent / 100) * sorted.length);
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1] as number;
}

export const median = (samples: readonly number[]): number => percentile(samples, 50);

export const sum = (samples: readonly number[]): number => samples.reduce((total, one) => total + one, 0);

/** Rounds to as many digits as a comparison needs. */
export function rounded(value: number, digits = 3): number {
  return Number.isFinite(value) ? Number(value.toFixed(digits)) : value;
}
