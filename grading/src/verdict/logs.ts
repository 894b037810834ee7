/** Reads the outcome of each test out of a log, or says why the harness would not read it: each dialect reads another part of it. */
import type { Instance, OutcomeSource } from '@swefarm/shared';
import { isDialect, readLog } from '../dialects/registry.ts';
import type { Dialect } from '../parsers/reader.ts';
import { withoutTimes } from '../parsers/rebenchnames.ts';
import { BAD_CODES, END_MARKER, EXIT_CODE_MARKER, START_MARKER } from '../plan/markers.ts';
import { withoutEscapes } from '../text/escapes.ts';
import { type Evidence, type Outcomes, unreadable } from './evidence.ts';

type Context = { parser: string; dialect: Dialect; instance: Instance };
type ReadPart = (log: string, context: Context) => Outcomes;

/** Which part of a log each harness reads, and when it reads none. */
const PARTS: Record<Dialect, ReadPart> = {
  '4.1.0': readMarked,
  '5.0.2': readLatest,
  swegym: readFork,
  swesmith: readSmith,
  'r2e-gym': readWhole,
  'swe-rebench': readStrictly,
  'swe-rebench-v2': readRenamed,
  'swe-lego': readWhole,
  'swe-bench-live': readTerminal,
};

/** @throws RangeError, SyntaxError where the harness raises; Error for a dialect that is not known */
export function readLogOutcomes(
  { dialect, parser }: Extract<OutcomeSource, { from: 'log' }>,
  { log }: Pick<Evidence, 'log'>,
  instance: Instance,
): Outcomes {
  if (!isDialect(dialect)) throw new Error(`logs of the dialect "${dialect}" cannot be read`);
  return PARTS[dialect](log, { dialect, parser, instance });
}

const hasBadCode = (log: string): boolean => BAD_CODES.some((code) => log.includes(code));

/** Text between the first start marker and the next end marker; null when either is missing. */
function between(log: string): string | null {
  const start = log.indexOf(START_MARKER);
  if (start < 0 || !log.includes(END_MARKER)) return null;
  const from = start + START_MARKER.length;
  const again = log.indexOf(START_MARKER, from);
  const upTo = again < 0 ? log.length : again;
  const end = log.indexOf(END_MARKER, from);
  return log.slice(from, end < 0 ? upTo : Math.min(end, upTo));
}

function readMarked(log: string, { parser, dialect, instance }: Context): Outcomes {
  if (hasBadCode(log)) return unreadable('bad_code');
  const tests = between(log);
  if (tests === null) return unreadable('no_markers');
  const outcomes = readLog(parser, dialect, tests, instance);
  if (outcomes.size > 0) return { readable: true, outcomes, text: tests };
  return { readable: true, outcomes: readLog(parser, dialect, log, instance), text: log };
}

/** SWE-rebench V1: as 4.1.0, but never the rest of the log. */
function readStrictly(log: string, { parser, dialect, instance }: Context): Outcomes {
  if (hasBadCode(log)) return unreadable('bad_code');
  const text = between(log);
  if (text === null) return unreadable('no_markers');
  return { readable: true, outcomes: readLog(parser, dialect, text, instance), text };
}

function readWhole(log: string, { parser, dialect, instance }: Context): Outcomes {
  return { readable: true, outcomes: readLog(parser, dialect, log, instance), text: log };
}

/** SWE-bench-Live reads a terminal. */
function readTerminal(log: string, context: Context): Outcomes {
  return readWhole(withoutEscapes(log), context);
}

/** SWE-rebench V2: names are compared without their times; of two tests that then have one name a pass counts. */
function readRenamed(log: string, { parser, dialect, instance }: Context): Outcomes {
  const outcomes = new Map<string, string>();
  for (const [name, status] of readLog(parser, dialect, log, instance)) {
    const bare = withoutTimes(name);
    if (outcomes.get(bare) !== 'PASSED') outcomes.set(bare, status);
  }
  return { readable: true, outcomes, text: log, nameOf: withoutTimes };
}

/** A count above zero in a summary line of a test runner; without one, an empty map of outcomes proves nothing. */
const SIGNS_OF_TESTS =
  /Executed [1-9]\d{0,30} of \d|TOTAL: [1-9]\d{0,30} (?:SUCCESS|FAILED)|[1-9]\d{0,30} passing|Tests:\s+[1-9]|Test Suites:\s+(?:\d{1,30} \w{1,60}, ){0,16}[1-9]\d{0,30} total|^# tests [1-9]|[1-9]\d{0,30} specs?, \d{1,30} failures?|': ok$/m;

/** The exit code of the tests that 5.0.2's eval script recorded, or null. */
export function recordedExitCode(log: string): number | null {
  for (let at = log.indexOf(EXIT_CODE_MARKER); at >= 0; at = log.indexOf(EXIT_CODE_MARKER, at + 1)) {
    const match = /^:\s{0,64}(-?\d{1,9})/.exec(log.slice(at + EXIT_CODE_MARKER.length, at + 120));
    if (match) return Number(match[1]);
  }
  return null;
}

function readLatest(log: string, context: Context): Outcomes {
  const read = readMarked(log, context);
  if (!read.readable) return read;
  const { outcomes } = read;
  if (outcomes.size === 0) {
    return hasSignOfTests(log) ? read : unreadable('no_sign_of_tests');
  }
  const exitCode = recordedExitCode(log);
  const failed = [...outcomes.values()].some((status) => status === 'FAILED' || status === 'ERROR');
  return exitCode !== null && exitCode !== 0 && !failed ? unreadable('exit_code_contradicts') : read;
}

/** Whether the log shows that a test runner ran tests. */
export const hasSignOfTests = (log: string): boolean => SIGNS_OF_TESTS.test(log);

/** The fork has no markers: the log must show that `git apply -v` applied the test patch, then all of it is read. */
function readFork(log: string, { parser, dialect, instance }: Context): Outcomes {
  if (hasBadCode(log) || log.includes('Failed to reset task environment')) return unreadable('bad_code');
  if (!/applied patch/i.test(log)) return unreadable('test_patch_not_applied');
  const mark = '>>>>> Applied Patch (pred)';
  const last = log.lastIndexOf(mark);
  const text = last < 0 ? log : log.slice(last + mark.length);
  return { readable: true, outcomes: readLog(parser, dialect, text, instance), text };
}

/** SWE-smith reads only the text between the markers as bash traces them. */
function readSmith(log: string, { parser, dialect, instance }: Context): Outcomes {
  if (log.includes('>>>>> Patch Apply Failed') || log.includes('>>>>> Tests Timed Out'))
    return unreadable('bad_code');
  if (!log.includes(START_MARKER) || !log.includes(END_MARKER)) return unreadable('no_markers');
  const start = `+ : '${START_MARKER}'`;
  const from = log.indexOf(start);
  const to = log.indexOf(`+ : '${END_MARKER}'`);
  if (from > to) throw new RangeError('markers are not in order');
  const text = from < 0 ? '' : log.slice(from + start.length, Math.max(to, from + start.length));
  return { readable: true, outcomes: readLog(parser, dialect, text, instance), text };
}
