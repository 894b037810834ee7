/** Reads JavaScript runners that print a mark and a name: mocha, vitest, and the runners of react-pdf and marked. */
import { before, isSpace, S, strip } from '../../text/pythontext.ts';
import { dropParen, MILLISECONDS } from '../endings.ts';
import { byLine, byStrippedLine, type Reader } from '../reader.ts';

const MOCHA: Record<string, string> = { '✓': 'PASSED', '✔': 'PASSED', '✖': 'FAILED', '-': 'SKIPPED' };
const NUMBERED = new RegExp(`^\\p{Nd}+\\)${S}+`, 'u');

/** Every line `- text` counts as a skipped test, and every numbered line counts as a failed test. */
export const mocha = byStrippedLine((line, found) => {
  const status = MOCHA[line[0] ?? ''];
  const numbered = NUMBERED.exec(line);
  if (status !== undefined && isSpace(line[1]) && line.length > 2)
    found.set(dropParen(line.slice(2), MILLISECONDS), status);
  else if (numbered && line.length > numbered[0].length)
    found.set(dropParen(line.slice(numbered[0].length), MILLISECONDS), 'FAILED');
});

const VITEST: Record<string, string> = { '✓': 'PASSED', '❯': 'FAILED', '✗': 'FAILED', '○': 'SKIPPED' };

/** The first parenthesis, which begins a time or a count of tests, ends the name. */
export const vitest = byStrippedLine((line, found) => {
  const status = VITEST[line[0] ?? ''];
  if (status !== undefined && isSpace(line[1])) found.set(strip(before(line.slice(1), '(')), status);
});

/** Returns a reader that takes name and status from the first pattern that matches a line. */
const firstOf = (patterns: readonly [RegExp, string][]): Reader =>
  byLine((line, found) => {
    for (const [pattern, status] of patterns) {
      const name = pattern.exec(line)?.[1];
      if (name === undefined) continue;
      found.set(strip(name), status);
      return;
    }
  });

const marked = (mark: string, rest: string, status: string): [RegExp, string] => [
  new RegExp(`^${S}*${mark}${S}${rest}`, 'u'),
  status,
];

/** Reads vitest in react-pdf's repository: `✓ name 12ms`. The time may be missing. */
export const reactPdf = firstOf([
  marked('✓', `([^]*)${S}\\p{Nd}+ms`, 'PASSED'),
  marked('✗', `([^]*)${S}\\p{Nd}+ms`, 'FAILED'),
  marked('✖', '([^]*)', 'FAILED'),
  marked('✓', '([^]*)', 'PASSED'),
]);

/** Reads Node's runner in marked's repository. A line without a time is no test. */
export const markedJs = firstOf([
  marked('✖', `([^]*?)${S}\\([.\\p{Nd}]+ms\\)`, 'FAILED'),
  marked('✔', `([^]*?)${S}\\([.\\p{Nd}]+ms\\)`, 'PASSED'),
]);
