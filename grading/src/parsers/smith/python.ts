/** Reads the runners of SWE-smith's Python projects: pytest (verbose, summary, xdist), unittest, tornado, mypy. */
import { before, fields, isSpace, S, SPACE } from '../../text/pythontext.ts';
import { byLine, type Reader } from '../reader.ts';

const WORDS = ['FAILED', 'PASSED', 'SKIPPED', 'ERROR', 'XFAIL'];

/** Returns a reader for lines `name STATUS …` that are not indented. */
const verbose = (words: readonly string[]): Reader =>
  byLine((line, found) => {
    if (isSpace(line[0])) return;
    const [name, next] = fields(line, 2);
    const word = words.find((candidate) => next?.startsWith(candidate));
    if (name !== undefined && word !== undefined) found.set(name, word);
  });

/** Reads pytest's progress lines (`-v`). Most Python projects use this reader. */
export const pytestVerbose = verbose(WORDS);
/** Reads pytest's progress lines in C++ projects, without XFAIL. */
export const cppPytest = verbose(WORDS.filter((word) => word !== 'XFAIL'));

/** Returns a reader for lines with a status, one blank, and a name. */
const statusFirst = (pattern: RegExp): Reader =>
  byLine((line, found) => {
    const match = pattern.exec(line);
    if (match) found.set(match[2] ?? '', match[1] ?? '');
  });

/** Reads pytest's short summary (`-rA`). */
export const pytestSummary = statusFirst(new RegExp(`^(${WORDS.join('|')})${S}([^${SPACE}]+)`));
/** Reads `[gw0] PASSED name`. A line with a percentage after the worker, or with a worker of two digits, does not match. */
export const pytestXdist = statusFirst(
  new RegExp(`^\\[gw\\p{Nd}\\]${S}(${WORDS.join('|')})${S}([^${SPACE}]+)`, 'u'),
);

const TITLE = new RegExp(`^[a-zA-Z0-9_,.()'${SPACE}-]*`);
const ENDS = [
  ['ok', 'PASSED'],
  ['FAIL', 'FAILED'],
  ['ERROR', 'ERROR'],
] as const;

/** Reads unittest's verbose lines, `name ... ok`. The name ends at the last three dots between blanks. */
export const slugify = byLine((line, found) => {
  const title = TITLE.exec(line)?.[0] ?? '';
  let at = title.lastIndexOf('...');
  while (at > 0 && !(isSpace(title[at - 1]) && isSpace(title[at + 3]))) at = title.lastIndexOf('...', at - 1);
  if (at < 2) return;
  const status = ENDS.find(([end]) => line.endsWith(end))?.[1];
  if (status !== undefined) found.set(title.slice(0, at - 1), status);
});

/** Reads tornado's runner: successes from the progress lines, and failures from headings such as `FAIL: name`. */
export const tornado = byLine((line, found) => {
  if (line.endsWith('... ok')) found.set(before(line, ' ... '), 'PASSED');
  else if (line.includes(' ... skipped ')) found.set(before(line, ' ... '), 'SKIPPED');
  else if (line.startsWith('ERROR:') || line.startsWith('FAIL:'))
    found.set(fields(line, 3).slice(1).join(' '), 'FAILED');
});

/** Reads every line with PASSED or FAILED. The last word is the name, even if that word belongs to a message. */
export const mypy = byLine((line, found) => {
  const status = line.includes('PASSED') ? 'PASSED' : line.includes('FAILED') ? 'FAILED' : null;
  const name = fields(line).at(-1);
  if (status !== null && name !== undefined) found.set(name, status);
});
