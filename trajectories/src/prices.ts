import { fileSchema, type JsonSchema, Price, type RunRecord, readYaml, UsageError } from '@swefarm/shared';
import { z } from 'zod';

const Prices = z.record(z.string(), z.strictObject(Price.shape));
export type Prices = z.infer<typeof Prices>;

/** Reads a YAML or JSON file: `MODEL: {prompt: 0.15, completion: 0.6}`, in US dollars per million tokens. Throws UsageError. */
export function readPrices(path: string): Prices {
  const read = Prices.safeParse(readYaml(path, `--prices ${path}`));
  if (read.success) return read.data;
  const reasons = read.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new UsageError(
    `--prices ${path}: ${reasons.join('; ')}; expected MODEL: {prompt: 0.15, completion: 0.6}, in US dollars for a million tokens`,
  );
}

/** Returns the JSON Schema of a file of prices. */
export const priceSchema = (): JsonSchema =>
  fileSchema(
    'Prices of models for swefarm, in US dollars for a million tokens',
    z.object({}).catchall(z.strictObject(Price.shape)),
  );

export const findPrice = (prices: Prices, model: string): Price | null =>
  Object.hasOwn(prices, model) ? (prices[model] ?? null) : null;

/** Returns the price of a model. Throws UsageError when the file has no price of the model. */
export function priceOf(prices: Prices, model: string | null, path: string): Price {
  const price = model === null ? null : findPrice(prices, model);
  if (price) return price;
  throw new UsageError(
    `--prices ${path}: has no price of the model ${model ?? '(the agent asks none)'}; it has ${Object.keys(prices).join(', ') || 'none'}`,
  );
}

export const NO_PRICE = 'the file of prices has no price of this model: its costs are not counted';

/** A file of prices. `named`: the user named the file, so the file must have a price of each model of the command. */
export type PriceFile = { path: string; named: boolean };

/**
 * Returns the price of a run's model from the file, else the price in the run's record. `policy` undefined: the run is unknown.
 *
 * @throws UsageError when the file cannot be read, or is named and lacks the price
 */
export function priceFor(file: PriceFile | null, policy: RunRecord['policy'] | undefined): Price | null {
  const own = policy?.price ?? null;
  if (file === null) return own;
  const prices = readPrices(file.path);
  if (file.named && policy === undefined) {
    throw new UsageError(
      `--prices ${file.path}: the model is unknown, because there is no OUTPUT.run.json beside the output; copy it there, or leave out --prices`,
    );
  }
  if (file.named) return priceOf(prices, policy?.model ?? null, file.path);
  return (policy ? findPrice(prices, policy.model) : null) ?? own;
}

/** Returns the record with the price of its model, by which the farm computes costs. */
export const withPrice = (record: RunRecord, price: Price | null): RunRecord =>
  record.policy && price ? { ...record, policy: { ...record.policy, price } } : record;
