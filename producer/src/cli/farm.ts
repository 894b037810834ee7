import { createLazy, type Farm, type OpenOptions, openFarm, type ProducerConfig } from '@swefarm/shared';
import { printStatus } from './terminal.ts';

/** Opens the farm, and waits up to `redis_patience_seconds` for Redis. Throws the errors of `openFarm`. */
export const openFarmPatiently = async (
  config: ProducerConfig,
  signal?: AbortSignal,
  { entrusts = false }: Pick<OpenOptions, 'entrusts'> = {},
): Promise<Farm> =>
  await openFarm(config, 'producer', {
    entrusts,
    patienceSeconds: config.redis_patience_seconds,
    onWait: (text) => printStatus(`swefarm: ${text}`),
    ...(signal ? { signal } : {}),
  });

export type LazyFarm = AsyncDisposable & { farm: () => Promise<Farm> };

/** Returns a farm that is opened at the first call of `farm`. */
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
