/**
 * Levels of records, which let two versions share a Redis during an upgrade. `needs` is the level that a reader of a run, an instance or a
 * job must understand; other readers skip the record. A change that earlier versions would misread (such as a new enum value) increments
 * {@link UNDERSTOOD}, and new records that use the change get this level.
 */
import { z } from 'zod';

/**
 * The highest level that this version understands: 1 is version 0.1.0; 2 adds agents that come as programs, and files and clocks of sessions;
 * 3 adds toolsets, prompt sets, feedback on submits, weights of rewards, branches, and runs that draw their groups; 4 adds headers of a
 * policy, policies of single rollouts, and dry runs; 5 adds Harbor tasks.
 */
export const UNDERSTOOD = 5;

/** Level of runs with policy headers, and of jobs with their own policy. */
export const POLICY_HEADERS = 4;

/** Level of a run whose rollouts continue recorded turns. */
export const BRANCHES = 3;

/** Level of dry runs. */
export const DRY_RUNS = 4;

/** Level of instances that are Harbor tasks. */
export const HARBOR_TASKS = 5;

/** The level of a record without `needs`. */
const FIRST = 1;

export const Needs = z.number().int().nonnegative().default(FIRST);

/** Returns the level of a record, which any version may have written. */
export function needsOf(record: unknown): number {
  const { needs } = (record !== null && typeof record === 'object' ? record : {}) as { needs?: unknown };
  return typeof needs === 'number' && needs >= FIRST ? needs : FIRST;
}
