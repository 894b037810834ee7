/** Opens the farm of a command: with patience for Redis, or at its first use. */
import { createLazy, type Farm, type OpenOptions, openFarm, type ProducerConfig } from '@swefarm/shared';
import { printStatus } from './terminal.ts';

/** Waits `redis_patience_seconds` for Redis. `entrusts` and errors as of `openFarm`. */
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

/** Opens the farm at its first use. */
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
