/** A worker dies, stands still, or comes back with another time of day, while a rollout of its is at a given stage. */
import { type LiveRollout, sleep } from '@swefarm/shared';
import { shiftedClock } from '../../src/launchers/clock.ts';
import type { ScheduledFault } from '../schedule.ts';
import type { WorkerPlace } from '../workers.ts';
import type { Fault, FaultContext, Struck } from './fault.ts';

const LOOK_MS = 20;
/** Some stages last a few milliseconds; then whatever the worker does is good enough. */
const LONGEST_LOOK_MS = 6_000;

type Aimed = { place: WorkerPlace; stage: string; held: LiveRollout[] };

/** A worker that is at the wanted stage: the wanted one first, else any other. */
async function aim({ farm, progress }: FaultContext, { worker, stage }: ScheduledFault): Promise<Aimed> {
  const wanted = farm.workers[worker % farm.workers.length] as WorkerPlace;
  const until = performance.now() + LONGEST_LOOK_MS;
  for (;;) {
    const running = await progress.running(farm.workers.map((place) => place.id()));
    const of = (place: WorkerPlace): LiveRollout[] => running.filter((one) => one.worker === place.id());
    const late = performance.now() > until;
    for (const place of [wanted, ...farm.workers]) {
      const held = of(place);
      const at = held.find((one) => stage === null || one.stage === stage) ?? (late ? held[0] : undefined);
      if (at) return { place, stage: at.stage, held };
    }
    if (late) return { place: wanted, stage: 'idle', held: [] };
    await sleep(LOOK_MS);
  }
}

const told = ({ place, stage, held }: Aimed, what: string): Struck => ({
  what: `${place.id()} (${place.runtime}) ${what} at ${stage}, ${held.length} rollouts in hand`,
  held,
});

export const killWorker: Fault = async (context, scheduled) => {
  const aimed = await aim(context, scheduled);
  const struck = told(aimed, 'killed');
  await aimed.place.replace();
  return struck;
};

export const stopWorker: Fault = async (context, scheduled) => {
  const aimed = await aim(context, scheduled);
  const struck = told(aimed, `stands still for ${scheduled.ms / 1000} s`);
  aimed.place.signal('SIGSTOP');
  await sleep(scheduled.ms);
  aimed.place.signal('SIGCONT');
  // Others may have taken over, or it goes on where it was: both are well.
  return { ...struck, held: null };
};

export const shiftWorkerClock: Fault = async (context, scheduled) => {
  const { farm } = context;
  const place = farm.workers[scheduled.worker % farm.workers.length] as WorkerPlace;
  const { offset } = scheduled;
  const held = await context.progress.running([place.id()]);
  const what = `${place.id()} (${place.runtime}) replaced by one whose clock is ${offset} off`;
  await place.replace(await shiftedClock(offset));
  return { what, held };
};
