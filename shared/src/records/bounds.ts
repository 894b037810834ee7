/**
 * The most that a record may ask for. Its numbers come from callers, files and other versions, and may be typing errors; code makes an
 * id for each rollout, a timer for a number of seconds, a buffer for a number of bytes: one number must not take a process down.
 */

/** Node's timers hold 2^31 ms; what is longer fires at once. */
const SECONDS = 20 * 24 * 3600;

export const MOST = {
  /** Rollouts of one group: asked for, beyond those, or in place of lost ones. */
  group: 10_000,
  instances: 1_000_000,
  /** Rollouts of one run, refilled ones too. */
  rollouts: 1_000_000,
  /** Rollouts that a group of an open run may have come to: callers add them for a day, one by one. */
  opened: 10_000_000,
  seconds: SECONDS,
  /** Life time of a run's records. */
  ttlSeconds: 366 * 24 * 3600,
  /** Instants: milliseconds since the epoch that a Date can hold. */
  instantMs: 8.64e15,
  versions: 1_000_000,
  steps: 1_000_000,
  /** Commands that set up one instance's sandbox. */
  setupSteps: 100,
  tokens: 1_000_000_000,
  /** One text in memory; Node's strings end at 512 MiB. */
  textBytes: 256 * 1024 ** 2,
  /** One picture of an issue: what common endpoints take. */
  pictureBytes: 5 * 1024 ** 2,
  /** Pictures of one issue. */
  pictures: 20,
  /** All pictures of one issue; each request carries them. */
  issuePictureBytes: 20 * 1024 ** 2,
  /** All pictures of one run: they lie in Redis, in its instances. */
  runPictureBytes: 1024 ** 3,
  /** Experts of one rollout's tokens: as base64 they must fit into one text beside the rest of its artifact. */
  expertBytes: 192 * 1024 ** 2,
  cpus: 4096,
  bytes: 2 ** 50,
  pids: 4_194_304,
  /** A score, either side of zero: the mean of a group must not hang on one number that a test wrote. */
  score: 1000,
  /** Named parts of one score. */
  components: 16,
} as const;

/** Rollouts that a run may come to. */
export const rolloutsOf = (
  run: { group_size: number; oversample: number; refills: number },
  instances: number,
): number => instances * (run.group_size + run.oversample + run.refills);

/** Why a run of so many instances is too large; null when it is not. */
export function tooMany(run: Parameters<typeof rolloutsOf>[0], instances: number): string | null {
  const count = rolloutsOf(run, instances);
  if (count <= MOST.rollouts) return null;
  return (
    `${instances} instances x (group_size ${run.group_size} + oversample ${run.oversample} + refills ${run.refills}) are ` +
    `${count} rollouts, and a run has at most ${MOST.rollouts}: make several runs`
  );
}

/** The size of a group as it is stored in Redis: a whole number within bounds, or null. */
export function sizeOf(text: string | null | undefined): number | null {
  const size = Number(text ?? Number.NaN);
  return Number.isInteger(size) && size >= 0 && size <= MOST.opened ? size : null;
}
