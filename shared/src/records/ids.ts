/** Ids: lower-case letters and digits, first a letter, so that they fit queue names, labels, file names and shells. */
import { customAlphabet } from 'nanoid';
import { SwefarmError } from '../failures/errors.ts';

const letters = customAlphabet('abcdefghijklmnopqrstuvwxyz', 1);
const tail = customAlphabet('0123456789abcdefghijklmnopqrstuvwxyz', 11);

/** A fresh id of 12 characters, for runs, workers, nonces. */
export const newId = (): string => letters() + tail();

/** `run.instance.index`: the id of one rollout. Instance ids may contain dots, so it is read from both ends. */
export const rolloutId = (runId: string, instanceId: string, index: number): string =>
  `${runId}.${instanceId}.${index}`;

/**
 * An attempt at a rollout. Its number is for people: a Redis that lost the claim gives the same number to another attempt.
 * The nonce of its claim is its own for ever.
 */
export type AttemptName = { attempt: number; claim: string };

export type RolloutName = { runId: string; instanceId: string; index: number };

/** The reverse of {@link rolloutId}; throws `bad_rollout_id` for anything else. */
export function parseRolloutId(id: string): RolloutName {
  const first = id.indexOf('.');
  const last = id.lastIndexOf('.');
  const index = id.slice(last + 1);
  if (first <= 0 || last <= first + 1 || !/^\d+$/.test(index)) {
    throw new SwefarmError('bad_rollout_id', `"${id}" is not a rollout id: expected run.instance.index`);
  }
  return { runId: id.slice(0, first), instanceId: id.slice(first + 1, last), index: Number(index) };
}

/** Rollouts by their run: keys are per run, questions are often about rollouts of several. */
export const byRun = (rolloutIds: readonly string[]): Map<string, string[]> =>
  Map.groupBy(rolloutIds, (id) => parseRolloutId(id).runId);
