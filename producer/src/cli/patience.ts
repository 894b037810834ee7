/** The farm of a command that does something, as a training step's script calls it: Redis may come up a little later. */
import { type Farm, openFarm, type ProducerConfig } from '@swefarm/shared';
import { say } from './terminal.ts';

/** Waits `redis_patience_seconds` for a Redis that does not answer, and says so. Errors as `openFarm`. */
export const openPatiently = async (config: ProducerConfig, signal?: AbortSignal): Promise<Farm> =>
  await openFarm(config, 'producer', {
    patienceSeconds: config.redis_patience_seconds,
    onWait: (text) => say(`swefarm: ${text}`),
    ...(signal ? { signal } : {}),
  });
