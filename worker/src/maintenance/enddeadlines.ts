/** A run's deadline ends a step with what is there: whatever has no result by then is cancelled, and says why. */
import type { Duty } from './maintenance.ts';
import { eachRun } from './runs.ts';

export const deadlines: Duty = {
  name: 'deadlines',
  everyMs: 1_000,
  async run(deps, signal) {
    const { farm, log } = deps;
    await eachRun('deadlines', deps, signal, async ({ run_id, deadline_at, open: takesCalls }, now) => {
      // A run that takes calls for a day has no instant at which all of them are over.
      if (takesCalls || deadline_at === null || now < deadline_at) return;
      if ((await farm.cancel.runCancelled(run_id)) !== null) return;
      const open = await farm.groups.left(run_id);
      if (open === 0) return;
      log.info({ run: run_id, open }, 'the deadline of a run has passed');
      await farm.cancel.cancelRun(run_id, 'deadline');
    });
  },
};
