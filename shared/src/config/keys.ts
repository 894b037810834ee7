/** Declares every configuration key once. The names of the environment variable and the flag derive from the name of the key. */
import { COMMON_KEYS } from './commonkeys.ts';
import type { ConfigKey } from './key.ts';
import { PRODUCER_KEYS } from './producerkeys.ts';
import { WORKER_KEYS } from './workerkeys.ts';

export { COMMON_KEYS, PRODUCER_KEYS, WORKER_KEYS };

type Values<Keys> = { readonly [K in keyof Keys]: Keys[K] extends ConfigKey<infer T> ? T : never };
export type CommonConfig = Values<typeof COMMON_KEYS>;
export type WorkerConfig = CommonConfig & Values<typeof WORKER_KEYS>;
export type ProducerConfig = CommonConfig & Values<typeof PRODUCER_KEYS>;
export type ConfigRole = 'worker' | 'producer';

export type { ConfigKey, Environment } from './key.ts';

export const ALL_KEYS: Readonly<Record<string, ConfigKey<unknown>>> = {
  ...COMMON_KEYS,
  ...WORKER_KEYS,
  ...PRODUCER_KEYS,
};

export const keysOf = (role: ConfigRole): Readonly<Record<string, ConfigKey<unknown>>> => ({
  ...COMMON_KEYS,
  ...(role === 'worker' ? WORKER_KEYS : PRODUCER_KEYS),
});

export const envName = (name: string): string => `SWEFARM_${name.toUpperCase()}`;
export const flagName = (name: string): string => `--${name.replaceAll('_', '-')}`;
