/** Rollouts whose caller is gone, and perhaps its gateway too, are cancelled. */
import { cancelOrphans } from '@swefarm/shared';
import type { Duty } from './maintenance.ts';

export const orphans: Duty = {
  name: 'orphans',
  everyMs: 5_000,
  async run({ farm, log }) {
    const cancelled = await cancelOrphans(farm);
    if (cancelled.length > 0) log.info({ rollouts: cancelled }, 'nobody waits for these any more: cancelled');
  },
};
