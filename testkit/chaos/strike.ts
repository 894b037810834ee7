/** Carries out the schedule while the rollouts go on, one fault after the other, and takes the time until each is overcome. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ground, Struck } from './faults/fault.ts';
import { FAULTS } from './faults/index.ts';
import type { FaultKind, ScheduledFault } from './schedule.ts';

export type Overcome = { kind: FaultKind; seconds: number };

const LOOK_MS = 200;
/** A farm that has not recovered by then will not. */
const LONGEST_MS = 180_000;

/** Resolves when every fault has struck and was overcome; `total` is how many results there will be. */
export async function strikeAll(
  ground: Ground,
  schedule: readonly ScheduledFault[],
  total: number,
  signal: AbortSignal,
): Promise<Overcome[]> {
  const overcome: Promise<Overcome>[] = [];
  for (const fault of schedule) {
    while (ground.progress.committed() < fault.at * total) {
      signal.throwIfAborted();
      await sleep(LOOK_MS);
    }
    signal.throwIfAborted();
    const from = performance.now();
    const struck = await FAULTS[fault.kind](ground, fault);
    ground.note(`${fault.kind}: ${struck.what}`);
    overcome.push(recovery(ground, fault.kind, struck, from, signal));
  }
  return await Promise.all(overcome);
}

/**
 * From the strike until the work goes on: every rollout that was in hand has its result or is in other hands; where
 * nothing in particular was hit, until the next result. What the fault itself lasts is part of it.
 */
async function recovery(
  { farm, progress, note }: Ground,
  kind: FaultKind,
  struck: Struck,
  from: number,
  signal: AbortSignal,
): Promise<Overcome> {
  const committed = progress.committed();
  const taken = new Set<string>();
  const isOver = async (): Promise<boolean> => {
    if (struck.held === null) return progress.committed() > committed;
    const running = await progress.running(farm.workers.map((place) => place.id()));
    for (const { rollout_id, attempt } of struck.held) {
      const again = running.some((one) => one.rollout_id === rollout_id && one.attempt > attempt);
      if (again || progress.has(rollout_id)) taken.add(rollout_id);
    }
    return struck.held.every(({ rollout_id }) => taken.has(rollout_id));
  };
  while (!(await isOver())) {
    signal.throwIfAborted();
    if (performance.now() - from > LONGEST_MS) {
      note(`${kind}: not overcome after ${LONGEST_MS / 1000} s`);
      break;
    }
    await sleep(LOOK_MS);
  }
  return { kind, seconds: (performance.now() - from) / 1000 };
}
