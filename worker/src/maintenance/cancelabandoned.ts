import { cancelOrphans } from '@swefarm/shared';
import type { Duty } from './duty.ts';

/** Cancels rollouts whose callers are gone, including callers of dead gateways. */
export const cancelAbandonedCalls: Duty = {
  name: 'cancel-abandoned-calls',
  everyMs: 5_000,
  async run({ farm, log }) {
    const cancelled = await cancelOrphans(farm);
    if (cancelled.length > 0)
      log.info({ rollouts: cancelled }, 'cancelled abandoned rollouts: no caller is connected');
  },
};

/** A worker ends its session within two seconds after the lease expires; after this time the session has no worker. */
const SESSION_GRACE_MS = 15_000;

/** Ends expired sessions that no worker has taken. A worker watches the leases of its sessions itself. */
export const cancelAbandonedSessions: Duty = {
  name: 'cancel-abandoned-sessions',
  everyMs: 5_000,
  async run({ farm, log }, signal) {
    for (const id of await farm.sessions.overdue(SESSION_GRACE_MS)) {
      signal.throwIfAborted();
      const session = await farm.sessions.state(id);
      if (session && session.state !== 'ended') {
        await farm.cancel.cancelRollouts([session.rollout_id], 'lease');
        log.info({ rollout_id: session.rollout_id }, 'session cancelled: its lease has expired');
      }
      await farm.sessions.end(id, 'lease');
    }
  },
};
