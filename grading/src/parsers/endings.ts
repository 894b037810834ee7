/** Times that runners append to the names of tests. */
import { ending, py, withoutEnd } from '../text/pattern.ts';
import { strip } from '../text/pythontext.ts';

const ANY_CASE = 'iu';
const IN_PARENTHESES = ending`(?<=.)\s\(\d+\s*m?s\)`;
const TIME = ending`\s*\(?\s*\d+(?:\.\d+)?\s*m?s\s*\)?\s*`;
const IN_BRACKETS = new RegExp(ending`\s*\[\s*\d+(?:\.\d+)?\s*m?s\s*\]\s*`, ANY_CASE);
const LAST_PARENTHESES = new RegExp(ending`\s*\(\s*\d+(?:\.\d+)?\s*m?s\s*\)\s*`, ANY_CASE);
const DURATIONS = new RegExp(py`(?<!\s)\s+in\s+\d+(?:\.\d+)?\s+(?:msec|sec)(?!\w)`, `g${ANY_CASE}`);

/** Returns `name` for `name (12 ms)`. */
export const dropParenTime = (text: string): string => withoutEnd(text, IN_PARENTHESES);

/** Returns `name` for `name (12 ms)` and `name 1.5s`. */
export const dropTime = (text: string): string => withoutEnd(text, TIME);

/** Returns `name` for `name [12 ms]`. */
export const dropBracketTime = (text: string): string => withoutEnd(text, IN_BRACKETS);

/**
 * Removes times from a name, as SWE-rebench V2 (c71902a) does for expected and found names: `[12 ms]` at the end, each ` in 1.5 sec`,
 * then `(12 ms)` at the end.
 */
export const withoutTimes = (name: string): string =>
  strip(withoutEnd(dropBracketTime(name).replace(DURATIONS, ''), LAST_PARENTHESES));
