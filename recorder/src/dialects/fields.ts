/** Reads fields of the JSON of a request. An agent is untrusted: each value is checked, and an error names the path of the field. */
import { tryParseJson } from '@swefarm/shared';
import { BadRequest } from './dialect.ts';

/** Most names in `dropped` of a request. */
const MOST_DROPPED = 32;

export type Fields = Record<string, unknown>;

const MOST_LEVELS = 64;
/** Most characters of a name, and of an id. */
const MOST_NAME = 256;

/** Returns whether a JSON value has at most `levels` levels of objects and lists. */
export function isShallow(value: unknown, levels = MOST_LEVELS): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1));
}

/** Returns the fields of a whole request. Throws BadRequest if it is no object, or nested deeper than 64 levels. */
export function requireBody(body: unknown): Fields {
  if (!isShallow(body)) throw new BadRequest(`the request is nested deeper than ${MOST_LEVELS} levels`);
  return requireFields(body, 'the request');
}

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns an object. Throws BadRequest for any other value. */
export function requireFields(value: unknown, path: string): Fields {
  if (!isFields(value)) throw new BadRequest(`${path}: expected an object`);
  return value;
}

/** Returns a list, and an empty list for an absent value. Throws BadRequest for any other value. */
export function listOf(value: unknown, path: string): unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new BadRequest(`${path}: expected a list`);
  return value;
}

/** Returns a text of any length, and an empty text for an absent value. Throws BadRequest for any other value. */
export function textOf(value: unknown, path: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw new BadRequest(`${path}: expected a text`);
  return value;
}

/** Returns a name or an id. Throws BadRequest for any other value. */
export function requireName(value: unknown, path: string): string {
  if (typeof value !== 'string' || value === '' || value.length > MOST_NAME)
    throw new BadRequest(`${path}: expected a text of 1 to ${MOST_NAME} characters`);
  return value;
}

/** Returns a number of tokens, and null for an absent value. Throws BadRequest for any other value. */
export function tokensOf(value: unknown, path: string): number | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1)
    throw new BadRequest(`${path}: expected a whole number from 1`);
  return value;
}

export const namesOf = (dropped: ReadonlySet<string>): string[] => [...dropped].slice(0, MOST_DROPPED);

/** Returns the id of an answer that an echo names, or null for a value that no endpoint of ours has given. */
export const answerIdOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= MOST_NAME ? value : null;

/** Returns arguments of a call as JSON.stringify() writes them, so that equal arguments are equal texts; unreadable ones unchanged. */
export function canonicalArguments(text: string): string {
  const value = tryParseJson(text);
  return value !== undefined && isShallow(value) ? JSON.stringify(value) : text;
}
