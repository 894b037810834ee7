/**
 * Settings that an open run cannot have, each with the value that has no effect. Other values would end groups or the run, or start
 * rollouts that no caller waits for. This file has no imports, because the help of every command loads it.
 */
export const NOT_FOR_OPEN_RUNS: Readonly<Record<string, unknown>> = {
  deadline_at: null,
  min_group: null,
  oversample: 0,
  refills: 0,
  group_size: 1,
  until: null,
};
