/** A rollout that workers died with too often is given up here: no further worker need be told by claiming it. */
import { decide } from '@swefarm/shared';
import { commitUnowned } from './commitunowned.ts';
import type { Duty } from './maintenance.ts';
import { heldBy, livingWorkers } from './ownership.ts';
import { eachRun } from './runs.ts';

export const parked: Duty = {
  name: 'parked',
  everyMs: 5_000,
  async run(deps, signal) {
    const { farm, log } = deps;
    // After an outage who lives is not known for a moment, and an attempt that goes on would be taken for a crash.
    if (!farm.registry.sure()) return;
    const living = await livingWorkers(farm);
    await eachRun('parked', deps, signal, async (run) => {
      // Nothing is given up for one death.
      for (const [id, journal] of await farm.journal.readRetried(run.run_id)) {
        if (signal.aborted) return;
        const last = journal.at(-1);
        if (!last || last.ended_at !== null || heldBy(journal, living) !== null) continue;
        const decision = decide(journal);
        if (decision.action !== 'give_up') continue;
        await commitUnowned(farm, run, id, journal, { failed: decision.failure });
        log.warn({ rollout_id: id, history: journal }, 'parked: workers died with it');
      }
    });
  },
};
