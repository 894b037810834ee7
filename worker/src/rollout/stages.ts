/** Measures the wall-clock seconds of each stage of an attempt. */
import { NO_SECONDS, type Seconds } from '@swefarm/shared';

export type Stage = Exclude<keyof Seconds, 'total'>;

export type StageClock = ReturnType<typeof startStageClock>;

type StageListeners = {
  onEnter: (stage: Stage) => void;
  onStage: (stage: Stage, seconds: number) => void;
};

/** @param queuedSeconds time between submit and the claim of this attempt */
export function startStageClock(queuedSeconds: number, { onEnter, onStage }: StageListeners) {
  const started = performance.now();
  const spent = { ...NO_SECONDS, queued: queuedSeconds, evaluation_start: 0, tests: 0 };
  const round = (seconds: number): number => Math.round(seconds * 1000) / 1000;
  return {
    /** Measures one call. The time counts for the stage even if the call throws. */
    async time<T>(stage: Stage, work: () => Promise<T>): Promise<T> {
      onEnter(stage);
      const from = performance.now();
      try {
        return await work();
      } finally {
        const seconds = (performance.now() - from) / 1000;
        spent[stage] += seconds;
        onStage(stage, seconds);
      }
    },
    set(stage: Stage, seconds: number): void {
      spent[stage] = seconds;
      onStage(stage, seconds);
    },
    /** Sets times that contain those of an earlier attempt. Listeners are not called, because the earlier attempt called them. */
    resume(times: Partial<Pick<Seconds, 'sandbox' | 'agent' | 'model' | 'command' | 'patch'>>): void {
      Object.assign(spent, times);
    },
    seconds(): Seconds {
      const rounded = Object.fromEntries(
        Object.entries(spent).map(([k, v]) => [k, round(v)]),
      ) as typeof spent;
      return { ...rounded, total: round((performance.now() - started) / 1000) };
    },
  };
}
