/** The price of a model, and what tokens cost by it. */
import { z } from 'zod';

/** US dollars for a million tokens. */
export const Price = z.object({ prompt: z.number().nonnegative(), completion: z.number().nonnegative() });
export type Price = z.infer<typeof Price>;

const PER = 1_000_000;

/** US dollars. Tokens that the endpoint had in its cache count as any others. */
export const costOf = (
  { prompt, completion }: { prompt: number; completion: number },
  price: Price,
): number => (prompt * price.prompt + completion * price.completion) / PER;
