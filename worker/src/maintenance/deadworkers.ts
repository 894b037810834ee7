/** Says which worker died, and what it had in hand: its rollouts come back to the queue when their locks expire. */
import type { WorkerRecord } from '@swefarm/shared';
import type { Duty } from './maintenance.ts';

export function deadWorkersDuty(): Duty {
  let seen = new Map<string, WorkerRecord>();
  return {
    name: 'dead-workers',
    everyMs: 2_000,
    async run({ farm, log }) {
      if (!farm.registry.sure()) return;
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
