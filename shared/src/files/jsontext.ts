/** JSON that every reader of the outputs takes. A model's text holds what JavaScript allows and UTF-8 or other readers do not. */

/**
 * Writes JSON as `JSON.stringify` does, with two differences. A half of a surrogate pair, which no UTF-8 text can hold, becomes U+FFFD:
 * pyarrow and pydantic refuse the whole file otherwise. U+2028 and U+2029 are escaped, because readers by `str.splitlines()` end a line there.
 */
export function jsonText(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent);
  const whole = text.includes('\\ud') ? text.replace(ESCAPE, wellFormed) : text;
  return SEPARATOR.test(whole)
    ? whole.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
    : whole;
}

/** Escapes from left to right, so that the backslash of an escaped backslash begins none. */
const ESCAPE = /\\(?:u[0-9a-f]{4}|.)/g;
const SEPARATOR = /[\u2028\u2029]/;

/** `JSON.stringify` writes whole pairs as characters: a surrogate that is escaped stands alone. */
const wellFormed = (found: string): string => (/^\\ud[89a-f]/.test(found) ? '\ufffd' : found);
