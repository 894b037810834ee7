/** Cancels rollouts that no client waits for any more: the caller is gone, or the driver of the session. */
import { cancelOrphans } from '@swefarm/shared';
import type { Duty } from './duty.ts';

/** Includes calls whose gateway is gone. */
export const cancelAbandonedCalls: Duty = {
  name: 'cancel-abandoned-calls',
  everyMs: 5_000,
  async run({ farm, log }) {
    const cancelled = await cancelOrphans(farm);
    if (cancelled.length > 0) log.info({ rollouts: cancelled }, 'nobody waits for these any more: cancelled');
  },
};

/** This long after its lease a session has no worker that would end it: a worker notices within a second or two. */
const SESSION_GRACE_MS = 15_000;

/** Sessions whose driver left before a worker took them: a worker that has taken one watches its lease itself. */
export const cancelAbandonedSessions: Duty = {
  name: 'cancel-abandoned-sessions',
  everyMs: 5_000,
  async run({ farm, log }, signal) {
    for (const id of await farm.sessions.overdue(SESSION_GRACE_MS)) {
      signal.throwIfAborted();
      const session = await farm.sessions.state(id);
      if (session && session.state !== 'ended') {
        await farm.cancel.cancelRollouts([session.rollout_id], 'lease');
        log.info({ rollout_id: session.rollout_id }, 'the driver of this session is gone; cancelled');
      }
      await farm.sessions.end(id, 'lease');
    }
  },
};
