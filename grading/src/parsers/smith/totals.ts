/** Reads runners that print totals or sections: aria2, ugrep, pugixml, phpunit. */
import { isSpace, linesOf, S, SPACE, strip, stripEnd, stripStart } from '../../text/pythontext.ts';
import { TESTDOX } from '../php.ts';
import { type Reader, statuses } from '../reader.ts';
import { forward } from './forward.ts';
import { addCounted, countIn } from './madeup.ts';

const OK = /OK \((\p{Nd}+)\)/u;
const RUN = new RegExp(`Tests run: (\\p{Nd}+),${S}+Failures: (\\p{Nd}+)`, 'u');

/** Reads CppUnit in aria2's repository. */
export const aria2: Reader = (log) => {
  const found = statuses();
  addCounted(found, 'test_', 'PASSED', countIn(OK.exec(log), 1), 0);
  const failures = log.indexOf('FAILURES!!!');
  const run = failures < 0 ? null : RUN.exec(log.slice(failures + 'FAILURES!!!'.length));
  addCounted(found, 'test_', 'PASSED', countIn(run, 1) - countIn(run, 2), 0);
  addCounted(found, 'test_fail_', 'FAILED', countIn(run, 2), 0);
  return found;
};

const ALL_PASSED = 'ALL TESTS PASSED';

/** Reads ugrep, which prints sections `*** name ***`. The first N sections passed, where N counts `ALL TESTS PASSED` in the log. */
export const ugrep: Reader = (log) => {
  const found = statuses();
  const passed = log.split(ALL_PASSED).length - 1;
  let at = 0;
  for (const section of sections(log)) found.set(section, at++ < passed ? 'PASSED' : 'FAILED');
  if (at === 0 && passed > 0) found.set('all_tests', 'PASSED');
  return found;
};

const SPACED = new RegExp(`${S}\\*\\*\\*`, 'g');

/** Yields each text between `*** ` and ` ***` in one line. */
function* sections(log: string): Generator<string> {
  const closing = forward(log, new RegExp(SPACED));
  const newline = forward(log, /\n/g);
  for (let open = log.indexOf('***'); open >= 0; ) {
    let from = open + 3;
    while (isSpace(log[from])) from++;
    const close = from > open + 3 ? closing(from) : null;
    let end = close?.index ?? -1;
    while (end > from && isSpace(log[end - 1])) end--;
    if (close && end >= from && end <= (newline(from)?.index ?? log.length)) {
      yield log.slice(from, end);
      open = log.indexOf('***', close.index + close[0].length);
    } else open = log.indexOf('***', open + 1);
  }
}

const FAILED_TEST = new RegExp(`^Test ([^${SPACE}]+) failed:`);
const OF_TOTAL = new RegExp(`^(?:FAILURE|Success):${S}*\\p{Nd}+${S}+out of${S}+(\\p{Nd}+)`, 'u');
const TESTS_PASSED = new RegExp(`^Success:${S}*(\\p{Nd}+)${S}+tests?${S}+passed`, 'u');

/** Reads pugixml, which prints failed tests by name and passed tests as a number. */
export const pugixml: Reader = (log) => {
  const found = statuses();
  const failed = new Set<string>();
  for (const line of linesOf(log)) {
    const name = FAILED_TEST.exec(line)?.[1];
    if (name !== undefined) {
      found.set(name, 'FAILED');
      failed.add(name);
    }
    const total = OF_TOTAL.exec(line);
    const passed = total ? countIn(total, 1) - failed.size : countIn(TESTS_PASSED.exec(line), 1);
    addCounted(found, 'test_passed_', 'PASSED', passed);
  }
  return found;
};

/** Reads phpunit --testdox. A line `title (class)` gives the class of the tests below that line. */
export const phpunitTestdox: Reader = (log) => {
  const found = statuses();
  let owner: string | null = null;
  for (const line of linesOf(log)) {
    const name = owner;
    const title = inParentheses(stripEnd(line));
    if (title !== null) {
      owner = title;
      continue;
    }
    const test = stripStart(line);
    const status = TESTDOX[test[0] ?? ''];
    const text = strip(test.slice(1));
    if (status !== undefined && text !== '') found.set(name === null ? text : `${name}::${text}`, status);
  }
  return found;
};

/** Returns `inside` for `name (inside)`, from the last `(` on; null for any other line. */
function inParentheses(line: string): string | null {
  const open = line.endsWith(')') ? line.lastIndexOf('(', line.length - 3) : -1;
  return open < 1 ? null : line.slice(open + 1, -1);
}
