/**
 * Levels of records, so that two versions can share a Redis during an upgrade. `needs` of a run, an instance or a job is the level that
 * a reader must understand; other readers skip the record.
 *
 * A change that earlier versions would misread (a new enum value, a key that changes behaviour) increments {@link UNDERSTOOD}, and
 * writes that level as `needs` of the records that use it.
 */
import { z } from 'zod';

/** The highest level that this version understands; 1 is version 0.1.0. */
export const UNDERSTOOD = 1;

/** The level of a record without `needs`. */
const FIRST = 1;

export const Needs = z.number().int().nonnegative().default(FIRST);

/** Returns the level of a record of any version. */
export function needsOf(record: unknown): number {
  const { needs } = (record !== null && typeof record === 'object' ? record : {}) as { needs?: unknown };
  return typeof needs === 'number' && needs >= FIRST ? needs : FIRST;
}
