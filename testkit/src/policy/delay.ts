/** Computes the delay of an answer: fixed, log-normal as on real endpoints, and per generated token. */
import { z } from 'zod';
import { normal } from './random.ts';

export const Delay = z.strictObject({
  fixed_ms: z.number().nonnegative().default(0),
  log_normal: z
    .strictObject({
      median_ms: z.number().positive(),
      /** Standard deviation of the logarithm; 0.5 puts the 95th percentile at 2.3 medians. */
      sigma: z.number().nonnegative(),
      max_ms: z.number().positive().default(600_000),
    })
    .optional(),
  ms_per_token: z.number().nonnegative().default(0),
  /** Time between two events of a stream. */
  event_ms: z.number().nonnegative().default(0),
});
export type Delay = z.infer<typeof Delay>;

/** Milliseconds to wait before an answer of `tokens` tokens; the same for the same seed. */
export function delayMs(delay: Delay, seed: number, tokens: number): number {
  const { fixed_ms: fixed, log_normal: spread, ms_per_token: perToken } = delay;
  const drawn = spread
    ? Math.min(spread.max_ms, spread.median_ms * Math.exp(spread.sigma * normal(seed)))
    : 0;
  return fixed + drawn + perToken * tokens;
}
