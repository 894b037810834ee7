/** How commands open the farm: waiting for Redis where they act on it, lazily where they may not need one. */
import { createLazy, type Farm, type OpenOptions, openFarm, type ProducerConfig } from '@swefarm/shared';
import { say } from './terminal.ts';

/** For scripts that start while Redis may not run yet: waits `redis_patience_seconds` and reports it. `entrusts` and errors as in `openFarm`. */
export const openFarmPatiently = async (
  config: ProducerConfig,
  signal?: AbortSignal,
  { entrusts = false }: Pick<OpenOptions, 'entrusts'> = {},
): Promise<Farm> =>
  await openFarm(config, 'producer', {
    entrusts,
    patienceSeconds: config.redis_patience_seconds,
    onWait: (text) => say(`swefarm: ${text}`),
    ...(signal ? { signal } : {}),
  });

export type LazyFarm = AsyncDisposable & { farm: () => Promise<Farm> };

/** Opens the farm at its first use, because much can be shown without Redis. */
export function lazyFarm(config: () => ProducerConfig): LazyFarm {
  const farm = createLazy(async () => await openFarm(config(), 'producer'));
  return {
    farm: farm.get,
    async [Symbol.asyncDispose]() {
      const opened = await farm.started()?.catch(() => null);
      await opened?.[Symbol.asyncDispose]();
    },
  };
}
