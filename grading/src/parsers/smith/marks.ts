/** Runners of JavaScript that print a mark and a name: mocha, vitest, react-pdf's and marked's. Jest is read as swebench reads it. */
import { before, isSpace, linesOf, SPACE, strip } from '../../text/pythontext.ts';
import { dropParen, MILLISECONDS } from '../endings.ts';
import { type Reader, statuses } from '../reader.ts';

const MOCHA: Record<string, string> = { '✓': 'PASSED', '✔': 'PASSED', '✖': 'FAILED', '-': 'SKIPPED' };
const NUMBERED = new RegExp(`^\\p{Nd}+\\)[${SPACE}]+`, 'u');

/** Any line `- text` counts as a skipped test, any numbered line as a failed one. */
export const mocha: Reader = (log) => {
  const found = statuses();
  for (const raw of linesOf(log)) {
    const line = strip(raw);
    const status = MOCHA[line[0] ?? ''];
    const numbered = NUMBERED.exec(line);
    if (status !== undefined && isSpace(line[1]) && line.length > 2)
      found.set(dropParen(line.slice(2), MILLISECONDS), status);
    else if (numbered && line.length > numbered[0].length)
      found.set(dropParen(line.slice(numbered[0].length), MILLISECONDS), 'FAILED');
  }
  return found;
};

const VITEST: Record<string, string> = { '✓': 'PASSED', '❯': 'FAILED', '✗': 'FAILED', '○': 'SKIPPED' };

/** A name ends at its first parenthesis, which is a time or a count of tests. */
export const vitest: Reader = (log) => {
  const found = statuses();
  for (const raw of linesOf(log)) {
    const line = strip(raw);
    const status = VITEST[line[0] ?? ''];
    if (status !== undefined && isSpace(line[1])) found.set(strip(before(line.slice(1), '(')), status);
  }
  return found;
};

/** The first pattern that fits a line gives the name (stripped) and the status. */
const firstOf =
  (patterns: readonly [RegExp, string][]): Reader =>
  (log) => {
    const found = statuses();
    for (const line of linesOf(log)) {
      for (const [pattern, status] of patterns) {
        const name = pattern.exec(line)?.[1];
        if (name === undefined) continue;
        found.set(strip(name), status);
        break;
      }
    }
    return found;
  };

const marked = (mark: string, rest: string, status: string): [RegExp, string] => [
  new RegExp(`^[${SPACE}]*${mark}[${SPACE}]${rest}`, 'u'),
  status,
];

/** Vitest in react-pdf's repository: `✓ name 12ms`, where the time may be missing. */
export const reactPdf = firstOf([
  marked('✓', `([^]*)[${SPACE}]\\p{Nd}+ms`, 'PASSED'),
  marked('✗', `([^]*)[${SPACE}]\\p{Nd}+ms`, 'FAILED'),
  marked('✖', '([^]*)', 'FAILED'),
  marked('✓', '([^]*)', 'PASSED'),
]);

/** Node's own runner in marked's repository: a line without a time is no test. */
export const markedJs = firstOf([
  marked('✖', `([^]*?)[${SPACE}]\\([.\\p{Nd}]+ms\\)`, 'FAILED'),
  marked('✔', `([^]*?)[${SPACE}]\\([.\\p{Nd}]+ms\\)`, 'PASSED'),
]);
