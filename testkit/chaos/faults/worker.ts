/** Faults of workers: a worker is killed or stopped while one of its rollouts is at a given stage, or restarts with a wrong clock. */
import { type LiveRollout, sleep } from '@swefarm/shared';
import { shiftedClock } from '../../src/launchers/clock.ts';
import type { ScheduledFault } from '../schedule.ts';
import type { WorkerSlot } from '../workers.ts';
import type { Fault, FaultContext, Struck } from './fault.ts';

const LOOK_MS = 20;
/** Longest wait for a stage in ms, because some stages last only milliseconds. After that, a rollout at any stage is accepted. */
const LONGEST_LOOK_MS = 6_000;

type Aimed = { slot: WorkerSlot; stage: string; affected: LiveRollout[] };

/** Returns a worker with a rollout at the scheduled stage: the scheduled worker if possible, else any other. */
async function aim({ farm, progress }: FaultContext, { worker, stage }: ScheduledFault): Promise<Aimed> {
  const wanted = farm.workers[worker % farm.workers.length] as WorkerSlot;
  const until = performance.now() + LONGEST_LOOK_MS;
  for (;;) {
    const running = await progress.running(farm.workers.map((slot) => slot.id()));
    const of = (slot: WorkerSlot): LiveRollout[] => running.filter((one) => one.worker === slot.id());
    const late = performance.now() > until;
    for (const slot of [wanted, ...farm.workers]) {
      const affected = of(slot);
      const at =
        affected.find((one) => stage === null || one.stage === stage) ?? (late ? affected[0] : undefined);
      if (at) return { slot, stage: at.stage, affected };
    }
    if (late) return { slot: wanted, stage: 'idle', affected: [] };
    await sleep(LOOK_MS);
  }
}

const told = ({ slot, stage, affected }: Aimed, what: string): Struck => ({
  what: `${slot.id()} (${slot.runtime}) ${what} at ${stage}, ${affected.length} rollouts affected`,
  affected,
});

export const killWorker: Fault = async (context, scheduled) => {
  const aimed = await aim(context, scheduled);
  const struck = told(aimed, 'killed');
  await aimed.slot.replace();
  return struck;
};

export const stopWorker: Fault = async (context, scheduled) => {
  const aimed = await aim(context, scheduled);
  const struck = told(aimed, `was stopped for ${scheduled.ms / 1000} s`);
  aimed.slot.current().kill('SIGSTOP');
  await sleep(scheduled.ms);
  aimed.slot.current().kill('SIGCONT');
  // Both are correct: other workers claimed the rollouts, or this worker continues them.
  return { ...struck, affected: null };
};

export const shiftWorkerClock: Fault = async (context, scheduled) => {
  const { farm } = context;
  const slot = farm.workers[scheduled.worker % farm.workers.length] as WorkerSlot;
  const { offset } = scheduled;
  const affected = await context.progress.running([slot.id()]);
  const what = `${slot.id()} (${slot.runtime}) replaced by one whose clock is ${offset} off`;
  await slot.replace(await shiftedClock(offset));
  return { what, affected };
};
