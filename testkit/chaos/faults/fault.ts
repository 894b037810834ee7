/** What a fault is to the run: something that is done to the farm, and what must happen until the farm has recovered. */
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
  /** What was hit, in words. */
  what: string;
  /** Rollouts that were in the hands of what was hit: each must be in other hands, or have its result. Null: the next result will do. */
  affected: readonly { rollout_id: string; attempt: number }[] | null;
};

/** Does it and undoes it; resolves when it is over. */
export type Fault = (context: FaultContext, scheduled: ScheduledFault) => Promise<Struck>;
