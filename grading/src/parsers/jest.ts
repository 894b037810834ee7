/** Reads runners that print a mark and a name: jest, vitest, TAP, and jest's JSON after a conversion by jq. */
import { isSpace, strip, strippedLines } from '../text/pythontext.ts';
import { dropParen, MILLISECONDS } from './endings.ts';
import { byStrippedLine, type Dialect, type Reader, statuses } from './reader.ts';

const marked =
  (marks: Record<string, string>, rename: (name: string, dialect: Dialect) => string): Reader =>
  (log, { dialect }) => {
    const found = statuses();
    for (const line of strippedLines(log)) {
      const status = marks[line[0] ?? ''];
      if (status === undefined || !isSpace(line[1]) || line.length < 3) continue;
      found.set(rename(line.slice(2), dialect), status);
    }
    return found;
  };

/** Reads `✓ name (12 ms)`. */
export const jest = marked({ '✓': 'PASSED', '✕': 'FAILED', '○': 'SKIPPED' }, (name, dialect) => {
  const bare = dropParen(name, MILLISECONDS);
  return dialect === '5.0.2' ? strip(bare) : bare;
});

/** Reads `✓ name 12ms` and `↓ name [skipped]`. */
export const vitest = marked({ '✓': 'PASSED', '×': 'FAILED', '↓': 'SKIPPED' }, dropTime);

function dropTime(name: string): string {
  const skipped = '[skipped]';
  let end = name.length;
  if (name.endsWith(skipped)) end -= skipped.length;
  else {
    if (name[end - 1] === 's') end--;
    if (name[end - 1] === 'm') end--;
    while (end < name.length && isSpace(name[end - 1])) end--;
    const digits = end;
    while (/^\p{Nd}$/u.test(name[end - 1] ?? '')) end--;
    if (end === digits) return name;
  }
  return end > 1 && isSpace(name[end - 1]) ? name.slice(0, end - 1) : name;
}

/** Reads `[PASSED] name` and `[FAILED] name`. */
export const jestJson = byStrippedLine((line, found) => {
  const word = line.slice(0, 8);
  if ((word !== '[PASSED]' && word !== '[FAILED]') || !isSpace(line[8]) || line.length < 10) return;
  found.set(line.slice(9), word.slice(1, -1));
});

/** Reads `ok 12 name` and `not ok 13 name`. */
export const tap = byStrippedLine((line, found) => {
  const match = /^(ok|not ok) \p{Nd}+ (?=[^\n])/u.exec(line);
  if (match) found.set(line.slice(match[0].length), match[1] === 'ok' ? 'PASSED' : 'FAILED');
});

/** Pull requests of immutable.js use different runners. @throws RangeError for a pull request whose runner is unknown */
export const immutableJs: Reader = (log, context) => {
  const number = context.instance.instance_id.split('-').at(-1) ?? '';
  if (number === '2006') return jest(log, context);
  if (number === '2005') return jestJson(log, context);
  throw new RangeError(`no test runner is known for ${context.instance.instance_id}`);
};
