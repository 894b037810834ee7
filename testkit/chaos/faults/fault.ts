/** Types of faults. A fault disturbs the farm and names the rollouts that must recover. */
import type { ChaosFarm } from '../farm.ts';
import type { Collector } from '../producer.ts';
import type { Progress } from '../progress.ts';
import type { ScheduledFault } from '../schedule.ts';

export type FaultContext = {
  farm: ChaosFarm;
  progress: Progress;
  collector: Collector;
  note(what: string): void;
};

export type Struck = {
  /** Description of what was hit. */
  what: string;
  /** Rollouts that ran where the fault struck. Each must run in another attempt or have a result. Null: the next result suffices. */
  affected: readonly { rollout_id: string; attempt: number }[] | null;
};

/** Causes the fault and ends it. Resolves when the fault is over. */
export type Fault = (context: FaultContext, scheduled: ScheduledFault) => Promise<Struck>;
