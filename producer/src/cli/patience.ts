/** The farm of a command that does something, as a training step's script calls it: Redis may come up a little later. */
import { type Farm, type OpenOptions, openFarm, type ProducerConfig } from '@swefarm/shared';
import { say } from './terminal.ts';

/** Waits `redis_patience_seconds` for a Redis that does not answer, and says so. `entrusts` and errors as `openFarm`. */
export const openPatiently = async (
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
