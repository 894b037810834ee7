/** Sessions whose driver is gone before a worker had them: the worker that has one watches its lease by itself. */
import type { Duty } from './maintenance.ts';

/** So long after its lease a session is nobody's; its worker, if it had one, noticed within a second or two. */
const GRACE_MS = 15_000;

export const sessionLeases: Duty = {
  name: 'session-leases',
  everyMs: 5_000,
  async run({ farm, log }, signal) {
    for (const id of await farm.sessions.overdue(GRACE_MS)) {
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
