/** The settings that an open run cannot have: see opensettings.ts. Imports nothing, for the help of every command needs it. */

/** Keys that end groups or a run, or open rollouts that no caller waits for; with the value by which each does nothing. */
export const NOT_FOR_OPEN_RUNS: Readonly<Record<string, unknown>> = {
  deadline_at: null,
  min_group: null,
  oversample: 0,
  refills: 0,
  group_size: 1,
};
