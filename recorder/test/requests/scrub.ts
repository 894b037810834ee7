/**
 * Replaces the texts of recorded requests, which are the work of others, by letters made from a hash. Each word becomes one of 64 words of
 * equal length, so equal texts stay equal, and a text that begins with another one still does. Names, ids and the keys of objects stay.
 */
import { createHash } from 'node:crypto';
import { tryParseJson } from '@swefarm/shared';

/** Fields whose values are names or ids. */
const NAMES = new Set(
  'type role name namespace id call_id tool_call_id tool_use_id model tool_choice status signature encrypted_content required enum media_type format detail $schema finish effort'.split(
    ' ',
  ),
);
/** Words of JSON, and texts by which a reader of a dialect recognises a part. */
const WORDS = new Set(['true', 'false', 'null', 'system-reminder', 'x-anthropic-billing-header']);

const LETTERS = 'etaoinshrdlucmfwypvbgkjqxz';
/** Number of different words of one length. It is small, so that no text can be read back from its words. */
const CHOICES = 64;

function hashed(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function replacement(word: string): string {
  const choice = (hashed(word)[0] ?? 0) % CHOICES;
  const hash = hashed(`${choice} ${word.length}`);
  return Array.from(word, (letter, at) => {
    const other = LETTERS[((hash[at % hash.length] ?? 0) + at) % LETTERS.length] ?? 'e';
    return letter === letter.toLowerCase() ? other : other.toUpperCase();
  }).join('');
}

const MARKS = /x-anthropic-billing-header|system-reminder|\p{L}+/gu;
/** The same in the text of JSON, where a letter after a backslash belongs to an escape. */
const MARKS_IN_JSON = /\\u[0-9a-fA-F]{4}|\\.|x-anthropic-billing-header|system-reminder|\p{L}+/gu;

const scrubText = (text: string): string =>
  text.replace(MARKS, (word) => (WORDS.has(word) ? word : replacement(word)));

/** Scrubs all texts of the arguments of a call; the keys stay. */
function scrubValues(value: unknown): unknown {
  if (typeof value === 'string') return scrubText(value);
  if (Array.isArray(value)) return value.map(scrubValues);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, scrubValues(inner)]));
}

/** Scrubs arguments as text. Text that is not written as JSON.stringify() writes it stays so, and unreadable text stays unreadable. */
function scrubArguments(text: string): string {
  const value = tryParseJson(text);
  if (value !== undefined)
    return JSON.stringify(scrubValues(value), null, text === JSON.stringify(value) ? undefined : ' ');
  return text.replace(MARKS_IN_JSON, (word) =>
    word.startsWith('\\') || WORDS.has(word) ? word : replacement(word),
  );
}

/** Scrubs any JSON value. `key`: the field that has the value. */
export function scrub(value: unknown, key = ''): unknown {
  if (typeof value === 'string') {
    if (NAMES.has(key)) return value;
    return key === 'arguments' || key === 'raw' ? scrubArguments(value) : scrubText(value);
  }
  // The items of the list `input` are messages; an object `input` has the arguments of a call.
  if (Array.isArray(value)) return value.map((inner) => scrub(inner, key === 'input' ? '' : key));
  if (typeof value !== 'object' || value === null) return value;
  if (key === 'input' && !('__unparsedToolInput' in value)) return scrubValues(value);
  const entries = Object.entries(value).map(([name, inner]) => {
    // The properties of a schema may have the names of fields, with schemas as values.
    const field =
      key === 'properties' || (NAMES.has(name) && typeof inner === 'object' && !Array.isArray(inner))
        ? ''
        : name;
    return [name, scrub(inner, field)];
  });
  return Object.fromEntries(entries);
}
