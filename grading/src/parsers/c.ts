/** Reads the test runners of C and C++ projects: redis, jq, micropython, googletest. */
import { isSpace, strippedLines, stripStart } from '../text/pythontext.ts';
import { dropParen, MILLISECONDS } from './endings.ts';
import { byStrippedLine, type Reader, statuses } from './reader.ts';

const REDIS: Record<string, string> = { ok: 'PASSED', err: 'FAILED', skip: 'SKIPPED', ignore: 'SKIPPED' };

/** Reads `[ok]: name (12 ms)`. The line of a failed test also has ` in path` after the name. */
export const redis = byStrippedLine((line, found) => {
  const match = /^\[(ok|err|skip|ignore)\]:/.exec(line);
  if (!match || !isSpace(line[match[0].length])) return;
  const name = dropParen(line.slice(match[0].length + 1), MILLISECONDS);
  const status = REDIS[match[1] ?? ''];
  if (name !== '' && status) found.set(status === 'FAILED' ? dropPath(name) : name, status);
});

/** Removes the suffix ` in path` and the blanks before the suffix. */
function dropPath(name: string): string {
  let word = name.length;
  while (word > 0 && !isSpace(name[word - 1])) word--;
  let gap = word;
  while (gap > 0 && isSpace(name[gap - 1])) gap--;
  if (word === name.length || gap === word || !name.slice(0, gap).endsWith('in')) return name;
  let end = gap - 2;
  if (end === 0 || !isSpace(name[end - 1])) return name;
  while (end > 0 && isSpace(name[end - 1])) end--;
  return name.slice(0, end);
}

/** Reads `PASS: name` and `FAIL: name`. */
export const jq = byStrippedLine((line, found) => {
  const word = line.slice(0, 4);
  if ((word !== 'PASS' && word !== 'FAIL') || line[4] !== ':' || !isSpace(line[5])) return;
  if (line.length > 6) found.set(line.slice(6), word === 'PASS' ? 'PASSED' : 'FAILED');
});

const MICROPYTHON: Record<string, string> = { pass: 'PASSED', FAIL: 'FAILED', skip: 'SKIPPED' };

/** Reads `pass  name`, `FAIL  name` and `skip  name`. */
export const micropython = byStrippedLine((line, found) => {
  const status = MICROPYTHON[line.slice(0, 4)];
  if (status !== undefined && isSpace(line[4])) found.set(stripStart(line.slice(4)), status);
});

/** Reads `3: [       OK ] suite.name (0 ms)`. The name begins after the last `[ OK ]` or `[ FAILED ]` before the time. */
export const googletest: Reader = (log) => {
  const found = statuses();
  for (const line of strippedLines(log)) {
    if (!line.endsWith(')')) continue;
    const end = lastOpening(line);
    for (
      let at = line.lastIndexOf('[');
      end > 0 && at >= 0;
      at = at > 0 ? line.lastIndexOf('[', at - 1) : -1
    ) {
      const header = bracket(line, at);
      if (!header || header.end > end) continue;
      found.set(line.slice(header.end, end), header.ok ? 'PASSED' : 'FAILED');
      break;
    }
  }
  return found;
};

/** Returns the index of the last blank that precedes a `(`; negative if there is none. */
function lastOpening(line: string): number {
  let at = line.lastIndexOf('(');
  while (at > 0 && !isSpace(line[at - 1])) at = line.lastIndexOf('(', at - 1);
  return at - 1;
}

/** Parses `[ OK ] ` or `[ FAILED ] ` at index `at`. `end` is the index at which the name begins. */
function bracket(line: string, at: number): { ok: boolean; end: number } | null {
  let next = at + 1;
  while (isSpace(line[next])) next++;
  const ok = line.startsWith('OK', next);
  if (!ok && !line.startsWith('FAILED', next)) return null;
  next += ok ? 2 : 6;
  while (isSpace(line[next])) next++;
  return line[next] === ']' && isSpace(line[next + 1]) ? { ok, end: next + 2 } : null;
}
