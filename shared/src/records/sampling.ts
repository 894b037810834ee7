/**
 * Sampling keys, and which of them a request contains. A server silently takes absent keys from the generation_config.json of the model, so
 * training runs send all keys. Other runs send only the keys that are set.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { MOST } from './bounds.ts';
import { parseRolloutId } from './ids.ts';
import { setting } from './setting.ts';

/** Limits of servers: at most 64 stop strings of at most 1000 characters. */
const MOST_STOPS = 64;
const LONGEST_STOP = 1000;

export const Sampling = z.object({
  temperature: setting('--temperature <t>', 'sampling temperature', z.number().min(0).optional()),
  top_p: setting('--top-p <p>', 'nucleus sampling', z.number().gt(0).max(1).optional()),
  top_k: setting(
    '--top-k <n>',
    'only the n likeliest tokens; -1: all',
    z
      .number()
      .int()
      .min(-1)
      .refine((k) => k !== 0, { error: 'expected -1 (all tokens) or at least 1' })
      .optional(),
  ),
  min_p: setting(
    '--min-p <p>',
    'only tokens at least p times as likely as the likeliest',
    z.number().min(0).max(1).optional(),
  ),
  repetition_penalty: setting(
    '--repetition-penalty <r>',
    'above 1: tokens of prompt and answer so far are less likely',
    z.number().gt(0).optional(),
  ),
  presence_penalty: setting(
    '--presence-penalty <p>',
    'above 0: tokens that were sampled are less likely',
    z.number().min(-2).max(2).optional(),
  ),
  frequency_penalty: setting(
    '--frequency-penalty <p>',
    'above 0: tokens are less likely the more often they were sampled',
    z.number().min(-2).max(2).optional(),
  ),
  stop: setting(
    '--stop <text>',
    'a text that ends an answer',
    z.array(z.string().min(1).max(LONGEST_STOP)).max(MOST_STOPS).optional(),
  ),
  max_tokens: setting(
    '--max-tokens <n>',
    'most tokens of one answer; never more than the room that is left',
    z.number().int().positive().max(MOST.tokens).optional(),
  ),
  seed: setting(
    '--seed <n>',
    'first seed: each rollout and turn samples with its own, counted from this one',
    z.number().int().min(-Number.MAX_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER).optional(),
  ),
});
export type Sampling = z.infer<typeof Sampling>;
export type SamplingKey = keyof Sampling;
export const SAMPLING_KEYS = Object.keys(Sampling.shape) as SamplingKey[];

/** Sampling settings that leave the distribution of the policy unchanged. */
export const NEUTRAL = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
} as const satisfies Sampling;

type Config = {
  sampling: Sampling;
  extra_body: Readonly<Record<string, unknown>>;
  require_tokens: boolean;
};

/**
 * Returns the sampling keys of a run's requests. Keys of `extra_body` override those of `sampling`; training (`require_tokens`) starts
 * from {@link NEUTRAL}.
 */
export function effectiveSampling({ sampling, extra_body: extra, require_tokens: all }: Config): Sampling {
  const found: Record<string, unknown> = {};
  for (const key of SAMPLING_KEYS) {
    const value = readKey(key, extra[key]) ?? sampling[key];
    if (value !== undefined) found[key] = value;
  }
  return all ? { ...NEUTRAL, ...found } : found;
}

/** Returns the fields of `extra_body` that are not valid sampling keys. */
export const otherFields = (extra: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(extra).filter(
      ([key, value]) => !(key in Sampling.shape) || readKey(key, value) === undefined,
    ),
  );

/** Parses the value of a sampling key; undefined if the value is invalid. The server receives an invalid value and refuses it. */
function readKey(key: string, value: unknown): unknown {
  if (value === undefined) return undefined;
  const schema = Sampling.shape[key as SamplingKey];
  return schema.safeParse(key === 'stop' && typeof value === 'string' ? [value] : value).data;
}

/** Returns the keys that change the sampled distribution. With these keys, raw log-probabilities differ from those of sampling. */
export const reshapingKeys = (sampling: Sampling): SamplingKey[] =>
  (Object.keys(NEUTRAL) as (keyof typeof NEUTRAL)[]).filter(
    (key) => sampling[key] !== undefined && sampling[key] !== NEUTRAL[key],
  );

/**
 * Returns the seed of one turn, below 2^31, which every server accepts. The seed depends on instance, index and turn, not on run and
 * attempt: rollouts of a group differ, and a repeated command repeats an evaluation.
 */
export function turnSeed(seed: number, rolloutId: string, turn: number): number {
  const { instanceId, index } = parseRolloutId(rolloutId);
  const hash = createHash('sha256').update(`${instanceId}.${index} ${turn}`).digest().readUInt32BE();
  return Number((((BigInt(seed) + BigInt(hash)) % SEEDS) + SEEDS) % SEEDS);
}
const SEEDS = 2n ** 31n;
