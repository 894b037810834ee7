/** Runners of SWE-smith's Python projects: pytest (verbose, summary, xdist), unittest, tornado, mypy. */
import { before, fields, isSpace, S, SPACE } from '../../text/pythontext.ts';
import { byLine, type Reader } from '../reader.ts';

const WORDS = ['FAILED', 'PASSED', 'SKIPPED', 'ERROR', 'XFAIL'];

/** `name STATUS …` at the start of a line. */
const verbose = (words: readonly string[]): Reader =>
  byLine((line, found) => {
    if (isSpace(line[0])) return;
    const [name, next] = fields(line, 2);
    const word = words.find((candidate) => next?.startsWith(candidate));
    if (name !== undefined && word !== undefined) found.set(name, word);
  });

/** pytest's progress lines with -v, the default of Python projects. */
export const pytestVerbose = verbose(WORDS);
/** The same for C++ projects that run pytest, without XFAIL. */
export const cppPytest = verbose(WORDS.filter((word) => word !== 'XFAIL'));

/** A status, one blank, then the name. */
const statusFirst = (pattern: RegExp): Reader =>
  byLine((line, found) => {
    const match = pattern.exec(line);
    if (match) found.set(match[2] ?? '', match[1] ?? '');
  });

/** pytest's short summary (-rA). */
export const pytestSummary = statusFirst(new RegExp(`^(${WORDS.join('|')})${S}([^${SPACE}]+)`));
/** `[gw0] PASSED name`. A percentage after the worker, or a worker of two digits, does not match. */
export const pytestXdist = statusFirst(
  new RegExp(`^\\[gw\\p{Nd}\\]${S}(${WORDS.join('|')})${S}([^${SPACE}]+)`, 'u'),
);

const TITLE = new RegExp(`^[a-zA-Z0-9_,.()'${SPACE}-]*`);
const ENDS = [
  ['ok', 'PASSED'],
  ['FAIL', 'FAILED'],
  ['ERROR', 'ERROR'],
] as const;

/** unittest's verbose lines, `name ... ok`, split at the last three dots between blanks. */
export const slugify = byLine((line, found) => {
  const title = TITLE.exec(line)?.[0] ?? '';
  let at = title.lastIndexOf('...');
  while (at > 0 && !(isSpace(title[at - 1]) && isSpace(title[at + 3]))) at = title.lastIndexOf('...', at - 1);
  if (at < 2) return;
  const status = ENDS.find(([end]) => line.endsWith(end))?.[1];
  if (status !== undefined) found.set(title.slice(0, at - 1), status);
});

/** tornado's runner: successes from the progress lines, failures from the headings below them. */
export const tornado = byLine((line, found) => {
  if (line.endsWith('... ok')) found.set(before(line, ' ... '), 'PASSED');
  else if (line.includes(' ... skipped ')) found.set(before(line, ' ... '), 'SKIPPED');
  else if (line.startsWith('ERROR:') || line.startsWith('FAIL:'))
    found.set(fields(line, 3).slice(1).join(' '), 'FAILED');
});

/** Every line with PASSED or FAILED; the last word is the name, even if it belongs to a message. */
export const mypy = byLine((line, found) => {
  const status = line.includes('PASSED') ? 'PASSED' : line.includes('FAILED') ? 'FAILED' : null;
  const name = fields(line).at(-1);
  if (status !== null && name !== undefined) found.set(name, status);
});
