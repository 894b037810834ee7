/** The wait of tests and benchmarks for what others do. */
import { poll } from '@swefarm/shared';

export type UntilOptions = {
  withinMs?: number;
  pauseMs?: number;
  /** What was waited for, for the error; the condition's own text by default. */
  what?: string;
};

/** Looks until the condition holds; the milliseconds that it took. Throws when it does not hold in time (two minutes). */
export async function until(
  holds: () => boolean | Promise<boolean>,
  { withinMs = 120_000, pauseMs = 20, what = String(holds) }: UntilOptions = {},
): Promise<number> {
  const from = performance.now();
  if (await poll(holds, { pauseMs, withinMs })) return performance.now() - from;
  throw new Error(`not within ${withinMs / 1000} s: ${what}`);
}
