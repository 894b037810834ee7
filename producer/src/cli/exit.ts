/** Exit codes. 1 is unused, because Node exits with 1 after a crash. This file imports nothing, so that `--help` is fast. */
export const EXIT = {
  allJudged: 0,
  usage: 2,
  someNotJudged: 10,
  belowMinGroup: 11,
  unusable: 12,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

type CollectedRun = {
  /** Number of judged rollouts by instance id. Every instance of the run has an entry. */
  judgedByGroup: ReadonlyMap<string, number>;
  groupSize: number;
  /** Minimum number of judged rollouts in each group. */
  minGroup?: number | undefined;
  /** Whether all rollouts of the run have a result. */
  complete: boolean;
};

/** Returns the exit code of a run that was collected completely or until a signal. */
export function exitCode(ending: CollectedRun): ExitCode {
  if (!ending.complete) return EXIT.interrupted;
  const least = Math.min(...ending.judgedByGroup.values());
  if (least >= ending.groupSize) return EXIT.allJudged;
  if (ending.minGroup === undefined) return EXIT.someNotJudged;
  return least >= ending.minGroup ? EXIT.allJudged : EXIT.belowMinGroup;
}
