import { z } from 'zod';

/** The price of a model, in US dollars for a million tokens. */
export const Price = z.object({ prompt: z.number().nonnegative(), completion: z.number().nonnegative() });
export type Price = z.infer<typeof Price>;

const PER = 1_000_000;

/** Returns the cost in US dollars. Cached tokens have the same price as other tokens. */
export const costOf = (
  { prompt, completion }: { prompt: number; completion: number },
  price: Price,
): number => (prompt * price.prompt + completion * price.completion) / PER;
