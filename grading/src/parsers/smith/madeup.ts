/** Creates the names that SWE-smith invents for runners that print only counts. */

/** Maximum number of tests in one count. No real run has more. */
const MOST = 1_000_000;

/** Adds `count` names with the prefix, numbered from `first`. @throws RangeError if `count` exceeds a million */
export function addCounted(
  found: Map<string, string>,
  prefix: string,
  status: string,
  count: number,
  first: 0 | 1 = 1,
): void {
  if (count > MOST) throw new RangeError(`${count} tests`);
  for (let at = 0; at < count; at++) found.set(`${prefix}${at + first}`, status);
}

/** Returns the number in a group of a match; 0 if the group or the match is missing. */
export const countIn = (match: RegExpExecArray | null, group: number): number =>
  Number(toAscii(match?.[group] ?? '0'));

/** Converts decimal digits of any script to ASCII: Python's `\d` matches all of them, and `int` reads them. */
const toAscii = (digits: string): string =>
  digits.replace(/[^0-9]/gu, (digit) => {
    const code = digit.codePointAt(0) ?? 0;
    let zero = code;
    while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1)) && code - zero < 9) zero--;
    return String(code - zero);
  });
