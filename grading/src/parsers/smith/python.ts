/** SWE-smith's Python projects: pytest in its verbose, summary and xdist forms, unittest, tornado's runner, mypy. */
import { before, fields, isSpace, linesOf, SPACE } from '../../text/pythontext.ts';
import { type Reader, statuses } from '../reader.ts';

const WORDS = ['FAILED', 'PASSED', 'SKIPPED', 'ERROR', 'XFAIL'];

/** `name STATUS …`, where the name begins the line. */
const verbose =
  (words: readonly string[]): Reader =>
  (log) => {
    const found = statuses();
    for (const line of linesOf(log)) {
      if (isSpace(line[0])) continue;
      const [name, next] = fields(line, 2);
      const word = words.find((candidate) => next?.startsWith(candidate));
      if (name !== undefined && word !== undefined) found.set(name, word);
    }
    return found;
  };

/** pytest's progress lines with -v, the default of Python projects. */
export const pytestVerbose = verbose(WORDS);
/** The same for C++ projects that run pytest; it knows no XFAIL. */
export const cppPytest = verbose(WORDS.filter((word) => word !== 'XFAIL'));

/** A status, one blank, then the name. */
const statusFirst =
  (pattern: RegExp): Reader =>
  (log) => {
    const found = statuses();
    for (const line of linesOf(log)) {
      const match = pattern.exec(line);
      if (match) found.set(match[2] ?? '', match[1] ?? '');
    }
    return found;
  };

/** pytest's short summary (-rA). */
export const pytestSummary = statusFirst(new RegExp(`^(${WORDS.join('|')})[${SPACE}]([^${SPACE}]+)`));
/** `[gw0] PASSED name`: a percentage in between, or a worker of two digits, does not match. */
export const pytestXdist = statusFirst(
  new RegExp(`^\\[gw\\p{Nd}\\][${SPACE}](${WORDS.join('|')})[${SPACE}]([^${SPACE}]+)`, 'u'),
);

const TITLE = new RegExp(`^[a-zA-Z0-9_,.()'${SPACE}-]*`);
const ENDS = [
  ['ok', 'PASSED'],
  ['FAIL', 'FAILED'],
  ['ERROR', 'ERROR'],
] as const;

/** unittest's verbose lines, `name ... ok`; the last three dots between blanks divide. */
export const slugify: Reader = (log) => {
  const found = statuses();
  for (const line of linesOf(log)) {
    const title = TITLE.exec(line)?.[0] ?? '';
    let at = title.lastIndexOf('...');
    while (at > 0 && !(isSpace(title[at - 1]) && isSpace(title[at + 3])))
      at = title.lastIndexOf('...', at - 1);
    if (at < 2) continue;
    const status = ENDS.find(([end]) => line.endsWith(end))?.[1];
    if (status !== undefined) found.set(title.slice(0, at - 1), status);
  }
  return found;
};

/** tornado's own runner: successes from the progress lines, failures from the headings below them. */
export const tornado: Reader = (log) => {
  const found = statuses();
  for (const line of linesOf(log)) {
    if (line.endsWith('... ok')) found.set(before(line, ' ... '), 'PASSED');
    else if (line.includes(' ... skipped ')) found.set(before(line, ' ... '), 'SKIPPED');
    else if (line.startsWith('ERROR:') || line.startsWith('FAIL:'))
      found.set(fields(line, 3).slice(1).join(' '), 'FAILED');
  }
  return found;
};

/** Any line with PASSED or FAILED; its last word is the name, even where that belongs to a message. */
export const mypy: Reader = (log) => {
  const found = statuses();
  for (const line of linesOf(log)) {
    const status = line.includes('PASSED') ? 'PASSED' : line.includes('FAILED') ? 'FAILED' : null;
    const name = fields(line).at(-1);
    if (status !== null && name !== undefined) found.set(name, status);
  }
  return found;
};
