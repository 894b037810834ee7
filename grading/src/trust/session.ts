/** Finds the last line of a pytest session in a log. The eval script shows whether pytest must print that line. */
import { HEREDOC } from '../plan/evalscript.ts';
import { END_MARKER, START_MARKER } from '../plan/markers.ts';
import { fields, linesOf } from '../text/pythontext.ts';

/** Matches `3 passed, 1 warning in 0.12s`, with or without a frame. A test may set the clock, so the seconds may be any number. */
const LAST_LINE =
  /\b\d{1,9} (?:passed|failed|errors?|skipped|xfailed|xpassed)\b[^\n]{0,300} in -?\d{1,12}(?:\.\d{1,9})?\s?s/;
/** Matches the end of a session of pytest-pretty, which prints each count on a separate line. */
const RESULTS =
  /^.{0,100}\bResults \(-?\d{1,12}\.\d{1,9}s\):[ \t]*\n.{0,100}\b\d{1,9} (?:passed|failed|error|skipped|xfailed|xpassed)/m;

export type Session = {
  ended: boolean;
  /** Whether the last line counts failures. Earlier lines prove nothing, because tests of test frameworks print similar lines. */
  hasFailures: boolean;
  /** Whether the last line counts only skipped tests and expected failures. */
  skippedAll: boolean;
};

/** Reads the end of the session. `text` is the part of the log that the parser read, without escape sequences. */
export function sessionIn(text: string): Session {
  const upTo = text.lastIndexOf(END_MARKER);
  const tail = text.slice(0, upTo < 0 ? text.length : upTo).slice(-4000);
  const last = tail.split('\n').findLast((line) => LAST_LINE.test(line)) ?? RESULTS_TO_END.exec(tail)?.[0];
  return {
    ended: LAST_LINE.test(text) || RESULTS.test(text),
    skippedAll:
      last !== undefined &&
      /\b[1-9]\d{0,8} (?:skipped|xfailed)\b/.test(last) &&
      !/\b\d{1,9} (?:passed|failed|errors?|xpassed)\b/.test(last),
    hasFailures: last !== undefined && /\b\d{1,9} (?:failed|errors?)\b/.test(last),
  };
}

const RESULTS_TO_END = new RegExp(`${RESULTS.source}[^]{0,400}`, 'm');

/** Whether pytest must print its last line: the script runs pytest or tox without an option that shortens the output (`-q`). */
export function mustPrintEnd(script: string): boolean {
  const marker = script.lastIndexOf(START_MARKER);
  const tests = script.slice(marker < 0 ? script.lastIndexOf(`\n${HEREDOC}\n`) + 1 : marker);
  return (
    /\b(?:pytest|py\.test|tox)\b/.test(tests) && !/\s-[a-zA-Z]*q|\s--quiet\b|\s--verbosity[= ]-/.test(tests)
  );
}

/** Matches reasons for exit code 1 without a FAILED test: a subtest failed, or coverage was too low. */
const OTHERS = /\bSUBFAIL(?:ED)?\b|\bRequired test coverage of [\d.]{1,9}% not reached/;

/** Whether the text shows a reason of {@link OTHERS}, or a failed test that the parser did not read. */
export function showsOtherFailure(text: string, outcomes: ReadonlyMap<string, string>): boolean {
  for (const line of linesOf(text)) {
    if (OTHERS.test(line)) return true;
    if (!/^(?:FAILED|ERROR)\s/.test(line)) continue;
    const name = fields(line, 2)[1];
    if (name !== undefined && !outcomes.has(name)) return true;
  }
  return false;
}
