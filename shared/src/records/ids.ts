/** Makes and parses ids. An id has lower-case letters and digits and begins with a letter, to be valid in queue, label and file names. */
import { createHash } from 'node:crypto';
import { customAlphabet } from 'nanoid';
import { SwefarmError } from '../failures/errors.ts';

const letters = customAlphabet('abcdefghijklmnopqrstuvwxyz', 1);
const tail = customAlphabet('0123456789abcdefghijklmnopqrstuvwxyz', 11);

/** Returns a new id of 12 characters. */
export const newId = (): string => letters() + tail();

/** Returns the id that belongs to a text: `letter` and 20 characters of its hash. */
export const idOf = (letter: string, text: string): string =>
  letter +
  BigInt(`0x${createHash('sha256').update(text).digest('hex')}`)
    .toString(36)
    .slice(0, 20);

/** Returns `run.instance.index`. Instance ids may contain dots. */
export const rolloutId = (runId: string, instanceId: string, index: number): string =>
  `${runId}.${instanceId}.${index}`;

/** An attempt at a rollout. Only `claim`, a nonce, is unique: if Redis loses a claim, the next one gets the same number. */
export type AttemptName = { attempt: number; claim: string };

/** Parses a rollout id. Throws SwefarmError `bad_rollout_id`. */
export function parseRolloutId(id: string) {
  const first = id.indexOf('.');
  const last = id.lastIndexOf('.');
  const index = id.slice(last + 1);
  if (first <= 0 || last <= first + 1 || !/^\d+$/.test(index)) {
    throw new SwefarmError('bad_rollout_id', `"${id}" is not a rollout id: expected run.instance.index`);
  }
  return { runId: id.slice(0, first), instanceId: id.slice(first + 1, last), index: Number(index) };
}

export const byRun = (rolloutIds: readonly string[]): Map<string, string[]> =>
  Map.groupBy(rolloutIds, (id) => parseRolloutId(id).runId);
