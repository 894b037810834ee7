/** Lets tests and benchmarks wait for events in other processes. */
import { poll } from '@swefarm/shared';

export type UntilOptions = {
  withinMs?: number;
  pauseMs?: number;
  /** Name of the condition in the error; by default its source text. */
  what?: string;
};

/** Polls until the condition holds and returns the elapsed milliseconds. Throws after `withinMs` (default: two minutes). */
export async function until(
  condition: () => boolean | Promise<boolean>,
  { withinMs = 120_000, pauseMs = 20, what = String(condition) }: UntilOptions = {},
): Promise<number> {
  const from = performance.now();
  if (await poll(condition, { pauseMs, withinMs })) return performance.now() - from;
  throw new Error(`not within ${withinMs / 1000} s: ${what}`);
}
