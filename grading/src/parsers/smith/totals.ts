/** Reads runners that print totals or sections: aria2, ugrep, pugixml, phpunit. */
import { py } from '../../text/pattern.ts';
import { isSpace, shortLines, strip } from '../../text/pythontext.ts';
import { type Readers, reading, STATUS } from '../reader.ts';
import { TESTDOX } from '../swebench.ts';
import { forward } from './forward.ts';
import { addCounted, countIn } from './madeup.ts';

const OK = py`OK \((\d+)\)`;
const RUN = py`Tests run: (\d+),\s+Failures: (\d+)`;

/** Reads CppUnit in aria2's repository. */
const aria2 = reading((log, found) => {
  addCounted(found, 'test_', 'PASSED', countIn(OK.exec(log), 1), 0);
  const failures = log.indexOf('FAILURES!!!');
  const run = failures < 0 ? null : RUN.exec(log.slice(failures + 'FAILURES!!!'.length));
  addCounted(found, 'test_', 'PASSED', countIn(run, 1) - countIn(run, 2), 0);
  addCounted(found, 'test_fail_', 'FAILED', countIn(run, 2), 0);
});

const ALL_PASSED = 'ALL TESTS PASSED';

/** Reads ugrep, which prints sections `*** name ***`. The first N sections passed, where N counts `ALL TESTS PASSED` in the log. */
const ugrep = reading((log, found) => {
  const passed = log.split(ALL_PASSED).length - 1;
  let at = 0;
  for (const section of sections(log)) found.set(section, at++ < passed ? 'PASSED' : 'FAILED');
  if (at === 0 && passed > 0) found.set('all_tests', 'PASSED');
});

const SPACED = new RegExp(py`\s\*\*\*`, 'gu');

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

const FAILED_TEST = py`^Test (\S+) failed:`;
const OF_TOTAL = py`^(?:FAILURE|Success):\s*\d+\s+out of\s+(\d+)`;
const TESTS_PASSED = py`^Success:\s*(\d+)\s+tests?\s+passed`;

/** Reads pugixml, which prints failed tests by name and passed tests as a number. */
const pugixml = reading((log, found) => {
  const failed = new Set<string>();
  for (const line of shortLines(log)) {
    const name = FAILED_TEST.exec(line)?.[1];
    if (name !== undefined) {
      found.set(name, 'FAILED');
      failed.add(name);
    }
    const total = OF_TOTAL.exec(line);
    const passed = total ? countIn(total, 1) - failed.size : countIn(TESTS_PASSED.exec(line), 1);
    addCounted(found, 'test_passed_', 'PASSED', passed);
  }
});

const CLASS = py`^(?=.*\)\s*$).+\((.+)\)\s*$`;

/** Reads phpunit --testdox. A line `title (class)` gives the class of the tests below that line. */
const phpunitTestdox = reading((log, found) => {
  let owner: string | undefined;
  for (const line of shortLines(log)) {
    const title = CLASS.exec(line)?.[1];
    const { word, name = '' } = TESTDOX.exec(line)?.groups ?? {};
    const text = strip(name);
    if (title !== undefined) owner = title;
    else if (word !== undefined && text !== '')
      found.set(owner === undefined ? text : `${owner}::${text}`, STATUS[word] ?? '');
  }
});

export const TOTALS: Readers = { aria2, ugrep, pugixml, 'phpunit-testdox': phpunitTestdox };
