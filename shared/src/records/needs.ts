/**
 * Which records a version of the software may work on. A run, an instance or a job names with `needs` the level that its reader must
 * know. A reader that knows less leaves the record to others, unopened. So fleets of two versions share one Redis during an upgrade.
 *
 * A change that gives a record a meaning that earlier versions would miss (a new value of an enum, a new key that changes what is
 * done) raises {@link UNDERSTOOD}, and writes that number as `needs` where the new meaning is used, and only there.
 */
import { z } from 'zod';

/** The highest level that this version knows. 1: all that records can contain in version 0.1.0. */
export const UNDERSTOOD = 1;

/** The level of a record that names none. */
const FIRST = 1;

export const Needs = z.number().int().nonnegative().default(FIRST);

/** Returns the level that a record of any version asks for. */
export function needsOf(record: unknown): number {
  const { needs } = (record !== null && typeof record === 'object' ? record : {}) as { needs?: unknown };
  return typeof needs === 'number' && needs >= FIRST ? needs : FIRST;
}
