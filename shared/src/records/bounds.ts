/**
 * Upper bounds of numbers in records. Callers, files and other versions provide the numbers, which determine counts of ids, timers and
 * buffers. With the bounds, a wrong number cannot exhaust a process.
 */

/** Longest time limit: timers of Node above 2^31 ms fire immediately. */
const SECONDS = 20 * 24 * 3600;

export const MOST = {
  /** Maximum of group_size, of oversample and of refills. */
  group: 10_000,
  instances: 1_000_000,
  /** Groups that a run draws; Redis stores the plan. */
  draws: 100_000,
  /** Rollouts of one run, including refills. */
  rollouts: 1_000_000,
  /** Rollouts of one group in an open run, to which callers add rollouts for days. */
  opened: 10_000_000,
  seconds: SECONDS,
  ttlSeconds: 366 * 24 * 3600,
  /** Milliseconds since the epoch that a Date can represent. */
  instantMs: 8.64e15,
  versions: 1_000_000,
  steps: 1_000_000,
  setupSteps: 100,
  tokens: 1_000_000_000,
  /** Bytes of one text; strings of Node end at 512 MiB. */
  textBytes: 256 * 1024 ** 2,
  /** Bytes of one picture, as common endpoints accept. */
  pictureBytes: 5 * 1024 ** 2,
  pictures: 20,
  /** Bytes of all pictures of one issue; each request contains all. */
  issuePictureBytes: 20 * 1024 ** 2,
  /** Bytes of all pictures of one run; Redis stores them. */
  runPictureBytes: 1024 ** 3,
  /** Bytes of the expert ids of one rollout; their base64 must fit into the JSON of an artifact. */
  expertBytes: 192 * 1024 ** 2,
  cpus: 4096,
  bytes: 2 ** 50,
  pids: 4_194_304,
  /** Absolute value of a score, so that one number does not dominate the mean of a group. */
  score: 1000,
  components: 16,
} as const;

/** Returns the maximum number of rollouts of a run. */
export const rolloutsOf = (
  run: { group_size: number; oversample: number; refills: number },
  groups: number,
): number => groups * (run.group_size + run.oversample + run.refills);

/** Returns why a run of `groups` groups is too large; null if it is not. */
export function tooMany(run: Parameters<typeof rolloutsOf>[0], groups: number): string | null {
  const count = rolloutsOf(run, groups);
  if (count <= MOST.rollouts) return null;
  return (
    `${groups} instances x (group_size ${run.group_size} + oversample ${run.oversample} + refills ${run.refills}) are ` +
    `${count} rollouts, and a run has at most ${MOST.rollouts}: make several runs`
  );
}

/** Parses the size of a group from Redis; null unless the text is an integer within bounds. */
export function sizeOf(text: string | null | undefined): number | null {
  const size = Number(text ?? Number.NaN);
  return Number.isInteger(size) && size >= 0 && size <= MOST.opened ? size : null;
}
