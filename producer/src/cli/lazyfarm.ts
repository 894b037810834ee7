/** A farm that is opened when it is first asked for: much can be shown without any Redis. */
import { type Farm, openFarm, type ProducerConfig } from '@swefarm/shared';

export type LazyFarm = AsyncDisposable & { farm: () => Promise<Farm> };

export function lazyFarm(config: () => ProducerConfig): LazyFarm {
  let opened: Promise<Farm> | null = null;
  return {
    farm() {
      opened ??= openFarm(config(), 'producer');
      // What failed is tried again the next time.
      opened.catch(() => {
        opened = null;
      });
      return opened;
    },
    async [Symbol.asyncDispose]() {
      const farm = await opened?.catch(() => null);
      await farm?.[Symbol.asyncDispose]();
    },
  };
}
