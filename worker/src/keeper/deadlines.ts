/** A run's deadline ends a step with what is there: whatever has no result by then is cancelled, and says why. */
import type { Duty } from './keeper.ts';

export const deadlines: Duty = {
  name: 'deadlines',
  everyMs: 1_000,
  async run({ farm, log }) {
    const { now, runs } = await farm.groups.unfinishedRuns();
    for (const { run_id, deadline_at, open: takesCalls } of runs) {
      // A run that takes calls for a day has no instant at which all of them are over.
      if (takesCalls || deadline_at === null || now < deadline_at) continue;
      const open = await farm.groups.open(run_id);
      const marked = await farm.cancel.isCancelled(open);
      if (open.every((id) => marked.has(id))) continue;
      log.info({ run: run_id, open: open.length }, 'the deadline of a run has passed');
      await farm.cancel.cancelRun(run_id, 'deadline');
    }
  },
};
