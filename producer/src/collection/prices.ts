/** Prices of models: a file, and what rollouts cost by it. */
import { readFileSync } from 'node:fs';
import { type Result, UsageError } from '@swefarm/shared';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';

/** US dollars for a million tokens. */
const Price = z.strictObject({ prompt: z.number().nonnegative(), completion: z.number().nonnegative() });
export type Price = z.infer<typeof Price>;
const Prices = z.record(z.string(), Price);
export type Prices = z.infer<typeof Prices>;

const PER = 1_000_000;

/** A YAML or JSON file: `MODEL: {prompt: 0.15, completion: 0.6}`. Throws UsageError. */
export function readPrices(path: string): Prices {
  try {
    return Prices.parse(parseYaml(readFileSync(path, 'utf8')));
  } catch (error) {
    const reason =
      error instanceof z.ZodError
        ? error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ')
        : (error as Error).message;
    throw new UsageError(
      `--prices ${path}: ${reason}; expected MODEL: {prompt: 0.15, completion: 0.6}, in US dollars for a million tokens`,
      { cause: error },
    );
  }
}

/** Throws UsageError when the file has no price of the model. */
export function priceOf(prices: Prices, model: string | null, path: string): Price {
  const price = model === null ? undefined : prices[model];
  if (price) return price;
  throw new UsageError(
    `--prices ${path}: has no price of the model ${model ?? '(the agent asks none)'}; it has ${Object.keys(prices).join(', ') || 'none'}`,
  );
}

/** US dollars. Tokens that the endpoint had in its cache count as any others. */
export const costOf = ({ prompt, completion }: Result['tokens'], price: Price): number =>
  (prompt * price.prompt + completion * price.completion) / PER;
