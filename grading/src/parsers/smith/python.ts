/** Reads the runners of SWE-smith's Python projects: pytest (verbose, summary, xdist), unittest, tornado, mypy. */
import { py } from '../../text/pattern.ts';
import { before, fields } from '../../text/pythontext.ts';
import { byLine, type Readers, wholeLineForms } from '../reader.ts';

const WORD = '(?<word>FAILED|PASSED|SKIPPED|ERROR|XFAIL)';

/** Reads tornado's runner: successes from the progress lines, and failures from headings such as `FAIL: name`. */
const tornado = byLine((line, found) => {
  if (line.endsWith('... ok')) found.set(before(line, ' ... '), 'PASSED');
  else if (line.includes(' ... skipped ')) found.set(before(line, ' ... '), 'SKIPPED');
  else if (line.startsWith('ERROR:') || line.startsWith('FAIL:'))
    found.set(fields(line, 3).slice(1).join(' '), 'FAILED');
});

/** Reads every line with PASSED or FAILED. The last word is the name, even if that word belongs to a message. */
const mypy = byLine((line, found) => {
  const status = line.includes('PASSED') ? 'PASSED' : line.includes('FAILED') ? 'FAILED' : null;
  const name = fields(line).at(-1);
  if (status !== null && name !== undefined) found.set(name, status);
});

export const PYTHON: Readers = {
  // pytest's progress lines (`-v`). Most Python projects use this reader.
  'python-pytest-v': wholeLineForms([py`^(?<name>\S+)\s+${WORD}`]),
  'cpp-pytest': wholeLineForms([py`^(?<name>\S+)\s+(?<word>FAILED|PASSED|SKIPPED|ERROR)`]),
  // pytest's short summary (`-rA`)
  'python-pytest-rA': wholeLineForms([py`^${WORD}\s(?<name>\S+)`]),
  // `[gw0] PASSED name`. A line with a percentage after the worker, or with a worker of two digits, does not match.
  'python-xdist-v': wholeLineForms([py`^\[gw\d\]\s${WORD}\s(?<name>\S+)`]),
  // unittest's verbose lines, `name ... ok`. The name ends at the last three dots between blanks.
  'python-slugify': wholeLineForms([
    py`^(?=.*(?<word>ok|FAIL|ERROR)$)(?<name>[a-zA-Z0-9_,.()'\s-]+)\s\.\.\.\s`,
  ]),
  tornado,
  mypy,
};
