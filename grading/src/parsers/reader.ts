/** The type of all log parsers, which return the outcome of each test in a log, and functions that make readers from patterns. */
import type { Instance } from '@swefarm/shared';
import { shortLines, strip } from '../text/pythontext.ts';

/** Harness whose log parsing a reader reproduces. */
export type Dialect =
  | '4.1.0'
  | '5.0.2'
  | 'swegym'
  | 'swesmith'
  | 'r2e-gym'
  | 'swe-rebench'
  | 'swe-rebench-v2'
  | 'swe-lego'
  | 'swe-bench-live';

export type ReaderContext = {
  dialect: Dialect;
  instance: Pick<Instance, 'instance_id' | 'repo' | 'version' | 'test_patch'>;
};

/**
 * Returns test name → status word. By default, the last line about a test counts. The result is a Map because names are hostile text.
 * A reader throws RangeError or SyntaxError where the harness raises an exception and writes no report.
 */
export type Reader = (log: string, context: ReaderContext) => Map<string, string>;
/** Readers by the name of the parser. */
export type Readers = Readonly<Record<string, Reader>>;

export const statuses = (): Map<string, string> => new Map();

type Read = (text: string, found: Map<string, string>, context: ReaderContext) => void;

/** Returns a log reader. `read` adds the outcomes of a log to `found`. */
export const reading =
  (read: Read): Reader =>
  (log, context) => {
    const found = statuses();
    read(log, found, context);
    return found;
  };

/** Returns a reader that parses each line separately. `clean` transforms each line first. */
export const byLine = (read: Read, clean?: (line: string) => string): Reader =>
  reading((log, found, context) => {
    for (const line of shortLines(log, clean)) read(line, found, context);
  });

/** Returns a reader like {@link byLine}, but `read` gets each line without leading and trailing blanks. */
export const byStrippedLine = (read: Read, clean?: (line: string) => string): Reader =>
  byLine(read, (line) => strip(clean ? clean(line) : line));

const WORDS = {
  PASSED: 'PASSED, PASS, Passed, passed, pass, OK, ok, SUCCESS, Success, success, ✓, ✔, +, .',
  FAILED:
    'FAILED, FAIL, Failed, failed, Fail, fail, FAILURE, Failure, failure, not ok, err, ERR, Timeout, ✕, ✗, ✘, ✖, ❯, ×, ⨯, x, F, E',
  SKIPPED:
    'SKIPPED, SKIP, Skipped, skipped, Skip, skip, TODO, PENDING, IGNORED, ignore, CANCELED, ○, ◌, ◦, ⚪, ↓, ↩, -, S, O',
  ERROR: 'ERROR, Error, error, ABORTED',
};

/** Returns a table without inherited keys, because a log may have the word `constructor` as a status. */
export const statusOf = (table: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.assign(Object.create(null), table);

/** Status of each word and mark by which a runner reports an outcome. */
export const STATUS = statusOf(
  Object.fromEntries(
    Object.entries(WORDS).flatMap(([status, words]) => words.split(', ').map((word) => [word, status])),
  ),
);

/** Pattern of lines about a test. The group `name` is the test. The second item, or else the group `word`, gives the status. */
type Form = RegExp | readonly [line: RegExp, status: string];

type Store = (found: Map<string, string>, name: string, status: string) => void;

type FormOptions = {
  rename?: (name: string, about: { status: string; dialect: Dialect }) => string;
  /** Default: the last line about a test counts. */
  store?: Store;
  clean?: (line: string) => string;
};

const byForms =
  (lines: typeof byLine) =>
  (forms: readonly Form[], { rename, store = setLast, clean }: FormOptions = {}): Reader =>
    lines((line, found, { dialect }) => {
      for (const form of forms) {
        const [pattern, given] = form instanceof RegExp ? [form] : form;
        const groups = pattern.exec(line)?.groups;
        if (!groups) continue;
        const { name = '', word = '' } = groups;
        const status = given ?? STATUS[word] ?? word;
        return store(found, rename ? rename(name, { status, dialect }) : name, status);
      }
    }, clean);

/** Returns a reader that takes a test from each stripped line. The first form that matches a line counts. */
export const forms = byForms(byStrippedLine);
/** Returns a reader like {@link forms}, but the lines keep their leading and trailing blanks. */
export const wholeLineForms = byForms(byLine);

function setLast(found: Map<string, string>, name: string, status: string): void {
  found.set(name, status);
}

/** Stores the status unless a pass would replace a failure. */
export function setUnlessFailed(found: Map<string, string>, name: string, status: string): void {
  if (status !== 'PASSED' || found.get(name) !== 'FAILED') found.set(name, status);
}

const RANK: Record<string, number> = { PASSED: 0, SKIPPED: 1, FAILED: 2, ERROR: 3 };

export function setWorst(found: Map<string, string>, name: string, status: string): void {
  const known = found.get(name);
  if (known === undefined || (RANK[status] ?? 0) > (RANK[known] ?? 0)) found.set(name, status);
}
