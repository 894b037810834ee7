/** Workers that died: which, with what in hand, and the rollouts that they died of. */
import { decide, type WorkerRecord } from '@swefarm/shared';
import { commitUnowned, livingWorkers, workerOf } from './commitunowned.ts';
import { type Duty, eachRun } from './duty.ts';

/** Their rollouts come back to the queue when their locks expire. */
export function reportDeadWorkers(): Duty {
  let seen = new Map<string, WorkerRecord>();
  return {
    name: 'report-dead-workers',
    everyMs: 2_000,
    async run({ farm, log }) {
      if (!farm.registry.canJudgeDead()) return;
      const living = new Map((await farm.registry.list()).map((one) => [one.worker, one]));
      for (const [worker, { node, active }] of seen) {
        // One that left by itself had nothing in hand.
        if (!living.has(worker) && active > 0)
          log.warn({ worker, node, active }, 'a worker died; its rollouts are tried again');
      }
      seen = living;
    },
  };
}

/** A rollout that too many workers died with is given up here, before another worker claims it. */
export const giveUpRollouts: Duty = {
  name: 'give-up-rollouts',
  everyMs: 5_000,
  async run(deps, signal) {
    const { farm, log } = deps;
    // After an outage who lives is not known for a moment, and an attempt that goes on would be taken for a crash.
    if (!farm.registry.canJudgeDead()) return;
    const living = await livingWorkers(farm);
    await eachRun(this.name, deps, signal, async (run) => {
      // Nothing is given up for one death.
      for (const [id, journal] of await farm.journal.readRetried(run.run_id)) {
        if (signal.aborted) return;
        const last = journal.at(-1);
        if (!last || last.ended_at !== null || workerOf(journal, living) !== null) continue;
        const decision = decide(journal);
        if (decision.action !== 'give_up') continue;
        const failed = { outcome: 'failed', failure: decision.failure } as const;
        await commitUnowned(farm, run, id, journal, failed);
        log.warn({ rollout_id: id, history: journal }, 'given up: workers died with it');
      }
    });
  },
};
