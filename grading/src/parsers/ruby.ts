/** Reads minitest, cucumber, test-unit, and rspec's JSON after a conversion by jq. */
import { isSpace, linesOf, S, strip, stripEnd, strippedLines } from '../text/pythontext.ts';
import { setWorst } from './ranks.ts';
import { byStrippedLine, type Reader, statuses } from './reader.ts';

/** Reads `Name#test. … = 0.01 s = .`. The name ends at the last `. ` that precedes `=` and an outcome. */
export const minitest = byStrippedLine((line, found) => {
  const outcome = Math.max(line.lastIndexOf('.'), line.lastIndexOf('F'), line.lastIndexOf('E'));
  const equals = outcome > 0 ? line.lastIndexOf('=', outcome - 1) : -1;
  const name = equals > 2 ? line.lastIndexOf('. ', equals - 2) : -1;
  if (name > 0) found.set(line.slice(0, name), line[outcome] === '.' ? 'PASSED' : 'FAILED');
});

/** Reads `name ....F`. The name ends at the last blank before dots; an F after the dots marks a failure. */
export const cucumber: Reader = (log) => {
  const found = statuses();
  for (const line of strippedLines(log)) {
    for (let at = line.lastIndexOf(' .'); at >= 0; at = at > 0 ? line.lastIndexOf(' .', at - 1) : -1) {
      let end = at + 1;
      while (line[end] === '.') end++;
      const failed = line[end] === 'F';
      if (!failed && end - at < 3) continue;
      found.set(line.slice(0, at), failed ? 'FAILED' : 'PASSED');
      break;
    }
  }
  return found;
};

const UNIT: Record<string, string> = { '.': 'PASSED', E: 'FAILED', F: 'FAILED', O: 'SKIPPED' };

/** Reads `test: name: .: (0.1)`. The name ends at the last colon before an outcome. */
export const rubyUnit = byStrippedLine((line, found) => {
  const prefix = line.startsWith('test: ') ? 6 : 0;
  const result = unitOutcome(line, prefix) ?? (prefix > 0 ? unitOutcome(line, 0) : null);
  if (result) found.set(result.name, result.status);
});

function unitOutcome(line: string, from: number): { name: string; status: string } | null {
  for (let at = line.lastIndexOf(':'); at > from; at = line.lastIndexOf(':', at - 1)) {
    let next = at + 1;
    while (isSpace(line[next])) next++;
    const status = UNIT[line[next] ?? ''];
    const whole = line[next] === '.' || !/[\p{L}\p{N}_]/u.test(line[next + 1] ?? ' ');
    if (next > at + 1 && status !== undefined && whole) return { name: line.slice(from, at), status };
  }
  return null;
}

/** Reads `name - passed` and `name - failed`, with any text after the status. */
export const rspec = byStrippedLine((line, found) => {
  const passed = line.lastIndexOf(' - passed');
  const failed = line.lastIndexOf(' - failed');
  const at = Math.max(passed, failed);
  if (at > 0) found.set(line.slice(0, at), passed > failed ? 'PASSED' : 'FAILED');
});

/** Pull requests of jekyll use different runners. @throws RangeError for a pull request whose runner is unknown */
export const jekyll: Reader = (log, context) => {
  const number = context.instance.instance_id.split('-')[1] ?? '';
  if (['9141', '8047', '8167'].includes(number)) return minitest(log, context);
  if (['8761', '8771'].includes(number)) return cucumber(log, context);
  throw new RangeError(`no test runner is known for ${context.instance.instance_id}`);
};

const SUITE = /^[A-Z][A-Za-z0-9_:]*$/;
const RUBY_WORDS: Record<string, string> = {
  PASS: 'PASSED',
  PASSED: 'PASSED',
  FAIL: 'FAILED',
  FAILURE: 'FAILED',
  ERROR: 'ERROR',
  SKIP: 'SKIPPED',
  SKIPPED: 'SKIPPED',
};
const WORD = new RegExp(`^(${Object.keys(RUBY_WORDS).join('|')})(?![A-Za-z0-9_])`);

/** Reads minitest-reporters: a class, then lines `test_name  PASS (0.01s)`. Stores `Class::test_name` with the worst status. */
export const minitestClasses: Reader = (log) => {
  const found = statuses();
  let suite = '';
  for (const raw of linesOf(log)) {
    const line = stripEnd(raw);
    if (SUITE.test(line)) suite = line;
    const test = strip(line);
    const upper = test.startsWith('test') ? test.search(/[A-Z]/) : -1;
    const word = upper > 4 && isSpace(test[upper - 1]) ? WORD.exec(test.slice(upper))?.[1] : undefined;
    const name = stripEnd(test.slice(0, Math.max(upper, 0)));
    if (word !== undefined && name.length > 4) setWorst(found, `${suite}::${name}`, RUBY_WORDS[word] ?? '');
  }
  return found;
};

const MINITEST_END = new RegExp(`${S}=${S}+[\\p{Nd}.]+${S}+s${S}+=${S}+([.FES])$`, 'u');
const LETTERS: Record<string, string> = { '.': 'PASSED', F: 'FAILED', E: 'FAILED', S: 'SKIPPED' };

/** Reads `Class#test = 0.01 s = .`. */
export const minitestVerbose = byStrippedLine((line, found) => {
  const from = Math.max(line.length - 128, 0);
  const match = MINITEST_END.exec(line.slice(from));
  if (!match) return;
  const name = stripEnd(line.slice(0, from + match.index));
  const hash = name.indexOf('#', 1);
  if (hash > 0 && hash < name.length - 1) found.set(name, LETTERS[match[1] ?? ''] ?? '');
});
