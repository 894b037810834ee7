/**
 * Writes JSON that other readers accept. A lone surrogate, which is not valid UTF-8, becomes U+FFFD, because pyarrow and pydantic refuse
 * the file otherwise. U+2028 and U+2029 are escaped, because Python's `str.splitlines()` ends a line there.
 */
export function jsonText(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent);
  const whole = text.includes('\\ud') ? text.replace(ESCAPE, wellFormed) : text;
  return SEPARATOR.test(whole)
    ? whole.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
    : whole;
}

/** Matches an escape in JSON. Two backslashes match as one escape, so that the second does not begin another. */
const ESCAPE = /\\(?:u[0-9a-f]{4}|.)/g;
const SEPARATOR = /[\u2028\u2029]/;

/** Replaces the escape of a surrogate: `JSON.stringify` escapes only lone surrogates. */
const wellFormed = (found: string): string => (/^\\ud[89a-f]/.test(found) ? '\ufffd' : found);
