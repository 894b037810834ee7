/** Exit codes; 1 is unused, because a crash of Node has it. Imports nothing, so that `--help` is fast. */
export const EXIT = {
  allJudged: 0,
  usage: 2,
  someNotJudged: 10,
  belowMinGroup: 11,
  unusable: 12,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export type CollectedRun = {
  /** Judged rollouts by instance id; every instance of the run has an entry. */
  judgedByGroup: ReadonlyMap<string, number>;
  groupSize: number;
  /** Judged rollouts that are enough for a group. */
  minGroup?: number | undefined;
  /** All rollouts of the run have a result. */
  complete: boolean;
};

/** The exit code of a run that was collected completely or until a signal. */
export function exitCode(ending: CollectedRun): ExitCode {
  if (!ending.complete) return EXIT.interrupted;
  const least = Math.min(...ending.judgedByGroup.values());
  if (least >= ending.groupSize) return EXIT.allJudged;
  if (ending.minGroup === undefined) return EXIT.someNotJudged;
  return least >= ending.minGroup ? EXIT.allJudged : EXIT.belowMinGroup;
}
