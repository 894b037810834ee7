/**
 * Compares an observation with the recorded one. Times, durations and addresses of objects differ between two runs of one command, so they
 * are masked: almost every test runner prints how long it took, and `ls -l` when a file was written.
 */

/** What differs from run to run, in the order of replacement. */
const VOLATILE: readonly [RegExp, string][] = [
  // 2026-11-26T20:03:11.123456+00:00, 2026-11-26
  [/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?)?/g, '<time>'],
  // Thu Nov 26 19:59:48 UTC 2026, Nov 26 20:03
  [
    /\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d\d:\d\d(?::\d\d)?(?: [A-Z]{3,4})?(?: \d{4})?/g,
    '<time>',
  ],
  // 20:03:11.123
  [/\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b/g, '<time>'],
  // in 0.12s, 12 ms, 3.4 seconds, 0m1.204s
  [/\b(?:\d+m)?\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|secs?|seconds?|milliseconds?|minutes?)\b/g, '<duration>'],
  // <object at 0x7f8a1c2b3d40>
  [/\b0x[0-9a-f]{6,16}\b/gi, '<address>'],
  // Rulers around a duration have the rest of the line's width.
  [/={3,}/g, '==='],
  [/-{3,}/g, '---'],
];

const masked = (text: string): string =>
  VOLATILE.reduce((rest, [pattern, name]) => rest.replace(pattern, name), text);

/** Returns whether two observations are equal apart from times, durations and addresses. */
export const isSameObservation = (one: string | null, other: string | null): boolean =>
  one === other || (one !== null && other !== null && masked(one) === masked(other));
