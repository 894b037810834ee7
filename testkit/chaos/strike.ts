/** Causes the scheduled faults one after the other while rollouts run, and measures the time until the farm recovers from each. */
import { sleep } from '@swefarm/shared';
import type { FaultContext, Struck } from './faults/fault.ts';
import { FAULTS } from './faults/index.ts';
import type { FaultKind, ScheduledFault } from './schedule.ts';

export type Overcome = { kind: FaultKind; seconds: number };

const LOOK_MS = 200;
/** Time in ms after which the farm counts as not recovered. */
const LONGEST_MS = 180_000;

/** Resolves when all faults have struck and each recovery has ended or failed. `total`: number of results at the end. */
export async function strikeAll(
  context: FaultContext,
  schedule: readonly ScheduledFault[],
  total: number,
  signal: AbortSignal,
): Promise<{ overcome: Overcome[]; problems: string[] }> {
  const recoveries: Promise<Overcome | string | null>[] = [];
  for (const fault of schedule) {
    while (context.progress.committed() < fault.at * total) {
      signal.throwIfAborted();
      await sleep(LOOK_MS);
    }
    signal.throwIfAborted();
    const from = performance.now();
    const struck = await FAULTS[fault.kind](context, fault);
    context.note(`${fault.kind}: ${struck.what}`);
    recoveries.push(recovery(context, { fault, struck, from, total }, signal));
  }
  const told = await Promise.all(recoveries);
  return {
    overcome: told.flatMap((one) => (one === null || typeof one === 'string' ? [] : one)),
    problems: told.filter((one) => typeof one === 'string'),
  };
}

type Strike = { fault: ScheduledFault; struck: Struck; from: number; total: number };

/**
 * Measures the time from the start of a fault until each affected rollout has a result or runs in another attempt; without
 * affected rollouts, until the next result. The duration of the fault is included. Returns null if there was nothing to
 * recover, or a text if the farm did not recover in time.
 */
export async function recovery(
  { farm, progress, note }: FaultContext,
  { fault: { kind }, struck, from, total }: Strike,
  signal: AbortSignal,
): Promise<Overcome | string | null> {
  const committed = progress.committed();
  const taken = new Set<string>();
  const isOver = async (): Promise<boolean> => {
    if (struck.affected === null) return progress.committed() > committed;
    const running = await progress.running(farm.workers.map((slot) => slot.id()));
    for (const { rollout_id, attempt } of struck.affected) {
      const again = running.some((one) => one.rollout_id === rollout_id && one.attempt > attempt);
      if (again || progress.has(rollout_id)) taken.add(rollout_id);
    }
    return struck.affected.every(({ rollout_id }) => taken.has(rollout_id));
  };
  if (struck.affected === null ? committed >= total : struck.affected.length === 0) return null;
  while (!(await isOver())) {
    signal.throwIfAborted();
    if (performance.now() - from > LONGEST_MS) {
      const problem = `${kind}: not overcome after ${LONGEST_MS / 1000} s`;
      note(problem);
      return problem;
    }
    await sleep(LOOK_MS);
  }
  return { kind, seconds: (performance.now() - from) / 1000 };
}
