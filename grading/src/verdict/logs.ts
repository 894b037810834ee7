/** Reads the outcome of each test from a log, or the reason why the harness reads none. Dialects read different parts of a log. */
import type { Instance, OutcomeSource } from '@swefarm/shared';
import { isDialect, readLog } from '../dialects/registry.ts';
import { withoutTimes } from '../parsers/endings.ts';
import type { Dialect } from '../parsers/reader.ts';
import { BAD_CODES, END_MARKER, EXIT_CODE_MARKER, START_MARKER } from '../plan/markers.ts';
import { withoutEscapes } from '../text/escapes.ts';
import { type Evidence, type Outcomes, unreadable } from './evidence.ts';

type ReadText = (text: string) => Map<string, string>;

/** Functions that select and read the part of a log that each harness reads. */
const PARTS: Record<Dialect, (log: string, read: ReadText) => Outcomes> = {
  '4.1.0': readMarked,
  '5.0.2': readLatest,
  swegym: readFork,
  swesmith: readSmith,
  'r2e-gym': readWhole,
  'swe-rebench': readStrictly,
  'swe-rebench-v2': readRenamed,
  'swe-lego': readWhole,
  'swe-bench-live': (log, read) => readWhole(withoutEscapes(log), read),
};

/** @throws RangeError, SyntaxError where the harness raises an exception; Error for an unknown dialect */
export function readLogOutcomes(
  { dialect, parser }: Extract<OutcomeSource, { from: 'log' }>,
  { log }: Pick<Evidence, 'log'>,
  instance: Instance,
): Outcomes {
  if (!isDialect(dialect)) throw new Error(`logs of the dialect "${dialect}" cannot be read`);
  return PARTS[dialect](log, (text) => readLog(parser, dialect, text, instance));
}

const hasBadCode = (log: string): boolean => BAD_CODES.some((code) => log.includes(code));

/** Returns the text between the first start marker and the next marker; null if the log lacks a start or an end marker. */
function between(log: string): string | null {
  const start = log.indexOf(START_MARKER);
  if (start < 0 || !log.includes(END_MARKER)) return null;
  const from = start + START_MARKER.length;
  const again = log.indexOf(START_MARKER, from);
  const upTo = again < 0 ? log.length : again;
  const end = log.indexOf(END_MARKER, from);
  return log.slice(from, end < 0 ? upTo : Math.min(end, upTo));
}

/** Reads the text between the markers as swebench 4.1.0 does, or the whole log if that text names no test. */
function readMarked(log: string, read: ReadText): Outcomes {
  const marked = readStrictly(log, read);
  return marked.readable && marked.outcomes.size === 0 ? readWhole(log, read) : marked;
}

/** Reads only the text between the markers, as SWE-rebench V1 does. */
function readStrictly(log: string, read: ReadText): Outcomes {
  if (hasBadCode(log)) return unreadable('bad_code');
  const text = between(log);
  return text === null ? unreadable('no_markers') : readWhole(text, read);
}

function readWhole(text: string, read: ReadText): Outcomes {
  return { readable: true, outcomes: read(text), text };
}

/** Reads names without their times, as SWE-rebench V2 does. Among tests with equal names, a pass counts. */
function readRenamed(log: string, read: ReadText): Outcomes {
  const outcomes = new Map<string, string>();
  for (const [name, status] of read(log)) {
    const bare = withoutTimes(name);
    if (outcomes.get(bare) !== 'PASSED') outcomes.set(bare, status);
  }
  return { readable: true, outcomes, text: log, nameOf: withoutTimes };
}

/** Matches a count above zero in a runner's summary, or OpenLayers' `': ok`. Without a match, a log without outcomes proves nothing. */
const SIGNS_OF_TESTS =
  /Executed [1-9]\d{0,30} of \d|TOTAL: [1-9]\d{0,30} (?:SUCCESS|FAILED)|[1-9]\d{0,30} passing|Tests:\s+[1-9]|Test Suites:\s+(?:\d{1,30} \w{1,60}, ){0,16}[1-9]\d{0,30} total|^# tests [1-9]|[1-9]\d{0,30} specs?, \d{1,30} failures?|': ok$/m;

/** Matches the exit code of the tests that swebench 5.0.2's eval script recorded. */
const RECORDED_CODE = new RegExp(`${EXIT_CODE_MARKER}:\\s{0,64}(-?\\d{1,9})`);

function readLatest(log: string, read: ReadText): Outcomes {
  const marked = readMarked(log, read);
  if (!marked.readable) return marked;
  const { outcomes } = marked;
  if (outcomes.size === 0) return hasSignOfTests(log) ? marked : unreadable('no_sign_of_tests');
  const exitCode = Number(RECORDED_CODE.exec(log)?.[1] ?? 0);
  const failed = [...outcomes.values()].some((status) => status === 'FAILED' || status === 'ERROR');
  return exitCode !== 0 && !failed ? unreadable('exit_code_contradicts') : marked;
}

/** Whether the log shows that a test runner ran tests. */
export const hasSignOfTests = (log: string): boolean => SIGNS_OF_TESTS.test(log);

/** Reads a log of SWE-Gym's harness, which has no markers. The log must show that `git apply -v` applied the test patch. */
function readFork(log: string, read: ReadText): Outcomes {
  if (hasBadCode(log) || log.includes('Failed to reset task environment')) return unreadable('bad_code');
  if (!/applied patch/i.test(log)) return unreadable('test_patch_not_applied');
  const mark = '>>>>> Applied Patch (pred)';
  const last = log.lastIndexOf(mark);
  return readWhole(last < 0 ? log : log.slice(last + mark.length), read);
}

/** Reads only the text between the markers in bash's trace, as SWE-smith does. */
function readSmith(log: string, read: ReadText): Outcomes {
  if (log.includes('>>>>> Patch Apply Failed') || log.includes('>>>>> Tests Timed Out'))
    return unreadable('bad_code');
  if (!log.includes(START_MARKER) || !log.includes(END_MARKER)) return unreadable('no_markers');
  const start = `+ : '${START_MARKER}'`;
  const from = log.indexOf(start);
  const to = log.indexOf(`+ : '${END_MARKER}'`);
  if (from > to) throw new RangeError('markers are not in order');
  return readWhole(from < 0 ? '' : log.slice(from + start.length, Math.max(to, from + start.length)), read);
}
