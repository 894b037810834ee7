/** Reads Django's test runner. An outcome is at the end of the test's line, or on a later line after other output. */
import { before, fields, isSpace, linesOf, strip, stripStart } from '../text/pythontext.ts';
import { type Reader, statuses } from './reader.ts';

const PASS_SUFFIXES = [' ... ok', ' ... OK', ' ...  OK'];
const VERSION_TEST = '--version is equivalent to version';
const TORN_MIGRATION = 'Applying sites.0002_alter_domain_unique...test_no_migrations';

export const django: Reader = (log) => {
  const found = statuses();
  let previous: string | null = null;
  for (const raw of linesOf(log)) previous = readLine(strip(raw), previous, found);
  for (const name of tornTests(log)) found.set(name, 'PASSED');
  return found;
};

/** Reads one line and returns the test to which a later line `ok` belongs. */
function readLine(line: string, previous: string | null, found: Map<string, string>): string | null {
  if (line.includes(VERSION_TEST)) found.set(VERSION_TEST, 'PASSED');
  const open = line.includes(' ... ') ? before(line, ' ... ') : previous;

  let rest = line;
  const suffix = PASS_SUFFIXES.find((candidate) => line.endsWith(candidate));
  if (suffix !== undefined) {
    if (line.startsWith(TORN_MIGRATION)) rest = strip(line.slice(line.indexOf('...') + 3));
    found.set(rest.endsWith(suffix) ? rest.slice(0, -suffix.length) : rest, 'PASSED');
  }
  if (rest.includes(' ... skipped')) found.set(before(rest, ' ... skipped'), 'SKIPPED');
  if (rest.endsWith(' ... FAIL')) found.set(before(rest, ' ... FAIL'), 'FAILED');
  if (rest.startsWith('FAIL:')) found.set(secondField(rest), 'FAILED');
  if (rest.endsWith(' ... ERROR')) found.set(before(rest, ' ... ERROR'), 'ERROR');
  if (rest.startsWith('ERROR:')) found.set(secondField(rest), 'ERROR');
  if (stripStart(rest).startsWith('ok') && open !== null) found.set(open, 'PASSED');
  return open;
}

/** Returns the second field. The harness takes the field without a check, so a bare `FAIL:` raises an exception. */
function secondField(line: string): string {
  const name = fields(line, 2)[1];
  if (name === undefined) throw new RangeError('list index out of range');
  return name;
}

/** Text that Django prints between the name of a test and `ok`. `end` returns the index at which the line `ok` ends, or -1. */
type Tear = { text: string; end: (log: string, from: number, lineEnd: number) => number };

const tears = (log: string): Tear[] => {
  let closing = 0;
  return [
    {
      text: 'Testing against Django installed in ',
      end: (_log, from) => {
        // `closing` may be many lines below `from`. The cached index keeps the search linear.
        while (closing >= 0 && closing < from) closing = nextClosing(log, from);
        return closing < 0 ? -1 : closing + CLOSING.length;
      },
    },
    {
      text: 'Internal Server Error: /',
      end: (_log, from, lineEnd) =>
        lineEnd > from && log[lineEnd - 1] === '/' ? okLineAt(log, lineEnd) : -1,
    },
    {
      text: 'System check identified no issues (0 silenced)',
      end: (_log, from) => okLineAt(log, from),
    },
  ];
};

const CLOSING = ' silenced).\nok';

function nextClosing(log: string, from: number): number {
  let at = log.indexOf(CLOSING, from);
  while (at >= 0 && !endsLine(log, at + CLOSING.length)) at = log.indexOf(CLOSING, at + 1);
  return at;
}

const endsLine = (log: string, at: number): boolean => at === log.length || log[at] === '\n';

/** Returns the index at which the line `ok` after the newline at `at` ends, or -1. */
const okLineAt = (log: string, at: number): number =>
  log.startsWith('\nok', at) && endsLine(log, at + 3) ? at + 3 : -1;

/** Yields the tests that passed although a text of {@link Tear} separates their ` ... ` from the line `ok`. */
function* tornTests(log: string): Generator<string> {
  const kinds = tears(log).map((tear) => ({ ...tear, earliest: 0 }));
  const starts = [0, 0, 0];
  let start = 0;
  for (const line of linesOf(log)) {
    starts.push(start);
    starts.shift();
    for (const kind of kinds) {
      const lineEnd = start + line.length;
      for (let at = line.indexOf(kind.text); at >= 0; at = line.indexOf(kind.text, at + 1)) {
        const name = nameBefore(log, start + at, starts);
        if (!name || name.start < kind.earliest) continue;
        const end = kind.end(log, start + at + kind.text.length, lineEnd);
        if (end < 0) continue;
        yield log.slice(name.start, name.end);
        kind.earliest = end + 1;
        break;
      }
    }
    start += line.length + 1;
  }
}

/** Returns the position of the name before ` ... ` and the text at `at`. Each blank may be a newline. */
function nameBefore(
  log: string,
  at: number,
  starts: readonly number[],
): { start: number; end: number } | null {
  const end = at - 5;
  if (end < 0 || !isSpace(log[at - 1]) || !log.startsWith('...', at - 4) || !isSpace(log[end])) return null;
  const start = starts.findLast((candidate) => candidate <= end);
  return start === undefined ? null : { start, end };
}
