/**
 * Replaces the texts of recorded requests, which are the work of others, by letters made from a hash. Each word becomes one of 64 words of
 * equal length, so equal texts stay equal, and a text that begins with another one still does. Names, ids and the keys of objects stay.
 */
import { createHash } from 'node:crypto';
import { tryParseJson } from '@swefarm/shared';

/** Fields whose values are names or ids. */
const NAMES = new Set(
  'type role name namespace id call_id tool_call_id tool_use_id model tool_choice status signature encrypted_content required enum media_type format detail $schema finish effort subagent_type'.split(
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

/** Scrubs the values in the text of arguments. Keeps spaces, so that the text is canonical or not, as before. Unreadable text stays so. */
function scrubArguments(text: string): string {
  const value = tryParseJson(text);
  const keys = new Set(typeof value === 'object' && value !== null ? Object.keys(value) : []);
  return text.replace(MARKS_IN_JSON, (word) =>
    word.startsWith('\\') || WORDS.has(word) || keys.has(word) ? word : replacement(word),
  );
}

/** Scrubs any JSON value. `key`: the field that has the value. */
export function scrub(value: unknown, key = ''): unknown {
  if (typeof value === 'string') {
    if (NAMES.has(key)) return value;
    return key === 'arguments' ? scrubArguments(value) : scrubText(value);
  }
  if (Array.isArray(value)) return value.map((inner) => scrub(inner, key));
  if (typeof value !== 'object' || value === null) return value;
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
