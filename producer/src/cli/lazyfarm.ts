/** A farm that is opened when it is first asked for: much can be shown without any Redis. */
import { createLazy, type Farm, openFarm, type ProducerConfig } from '@swefarm/shared';

export type LazyFarm = AsyncDisposable & { farm: () => Promise<Farm> };

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
