import { decide, type WorkerRecord } from '@swefarm/shared';
import { commitUnowned, livingWorkers, workerOf } from './commitunowned.ts';
import { type Duty, eachRun } from './duty.ts';

/** Logs each worker that died. The rollouts of a dead worker return to the queue when their locks expire. */
export function reportDeadWorkers(): Duty {
  let seen = new Map<string, WorkerRecord>();
  return {
    name: 'report-dead-workers',
    everyMs: 2_000,
    async run({ farm, log }) {
      if (!farm.registry.canJudgeDead()) return;
      const living = new Map((await farm.registry.list()).map((one) => [one.worker, one]));
      for (const [worker, { node, active }] of seen) {
        // A drained worker has no running rollouts, so its end is no failure.
        if (!living.has(worker) && active > 0)
          log.warn({ worker, node, active }, 'worker died: its rollouts are retried');
      }
      seen = living;
    },
  };
}

/** Gives up rollouts whose workers died too often, before another worker claims them. */
export const giveUpRollouts: Duty = {
  name: 'give-up-rollouts',
  everyMs: 5_000,
  async run(deps, signal) {
    const { farm, log } = deps;
    // After an outage, living workers may not be listed yet, and their attempts would count as crashes.
    if (!farm.registry.canJudgeDead()) return;
    const living = await livingWorkers(farm);
    await eachRun(this.name, deps, signal, async (run) => {
      // One death is not enough to give up, so only retried rollouts are read.
      for (const [id, journal] of await farm.journal.readRetried(run.run_id)) {
        if (signal.aborted) return;
        const last = journal.at(-1);
        if (!last || last.ended_at !== null || workerOf(journal, living) !== null) continue;
        const decision = decide(journal);
        if (decision.action !== 'give_up') continue;
        const failed = { outcome: 'failed', failure: decision.failure } as const;
        await commitUnowned(farm, run, id, journal, failed);
        log.warn({ rollout_id: id, history: journal }, 'rollout given up: its workers died');
      }
    });
  },
};
