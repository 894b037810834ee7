/** Reports workers that died and how many rollouts they ran, and gives up rollouts that too many workers died with. */
import { decide, type WorkerRecord } from '@swefarm/shared';
import { commitUnowned, livingWorkers, workerOf } from './commitunowned.ts';
import { type Duty, eachRun } from './duty.ts';

/** The rollouts of a dead worker return to the queue when their locks expire. */
export function reportDeadWorkers(): Duty {
  let seen = new Map<string, WorkerRecord>();
  return {
    name: 'report-dead-workers',
    everyMs: 2_000,
    async run({ farm, log }) {
      if (!farm.registry.canJudgeDead()) return;
      const living = new Map((await farm.registry.list()).map((one) => [one.worker, one]));
      for (const [worker, { node, active }] of seen) {
        // A worker that left in order had no rollouts running.
        if (!living.has(worker) && active > 0)
          log.warn({ worker, node, active }, 'a worker died; its rollouts are tried again');
      }
      seen = living;
    },
  };
}

/** Gives up a rollout that too many workers died with, before another worker claims it. */
export const giveUpRollouts: Duty = {
  name: 'give-up-rollouts',
  everyMs: 5_000,
  async run(deps, signal) {
    const { farm, log } = deps;
    // Just after an outage living workers may not be listed, and their attempts would be taken for crashes.
    if (!farm.registry.canJudgeDead()) return;
    const living = await livingWorkers(farm);
    await eachRun(this.name, deps, signal, async (run) => {
      // One death is not enough to give a rollout up, so only retried ones are read.
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
