/** Reads runners of C and C++ projects that need more than one pattern. Each reader serves a single project. */
import { withoutEscapes } from '../../text/escapes.ts';
import { py } from '../../text/pattern.ts';
import { linesOf, strip } from '../../text/pythontext.ts';
import { byLine, byStrippedLine, type Readers, reading, STATUS } from '../reader.ts';
import { addCounted, countIn } from './madeup.ts';

const JAKT = py`^\[\s*(FAIL|SKIP)\s*\]\s+(.+)`;
const PASSED = py`^(\d+)\s+passed`;

/** Reads jakt, which prints failed and skipped tests by name, and passed tests as a number. */
const jakttest = byStrippedLine((line, found) => {
  const [, word, name = ''] = JAKT.exec(line) ?? [];
  if (word !== undefined) found.set(name, STATUS[word] ?? '');
  addCounted(found, 'jakt_pass_', 'PASSED', countIn(PASSED.exec(line), 1));
}, withoutEscapes);

const COOST_TEST = py`^>\s*begin test:\s+(\S+)`;
const COOST_CASE = py`^\s*case\s+(\S+):`;

/** A test of coost consists of cases. A failed expectation marks the test as failed, but not the case. */
const coost = reading((log, found) => {
  let test = 'unknown';
  const text = withoutEscapes(log);
  for (const line of linesOf(text)) {
    const begun = COOST_TEST.exec(line)?.[1];
    const name = COOST_CASE.exec(line)?.[1];
    if (begun !== undefined) test = begun;
    else if (name !== undefined) found.set(`${test}::${name}`, 'PASSED');
    else if (line.includes('failed') && line.includes('EXPECT')) found.set(test, 'FAILED');
  }
  if (found.size === 0 && text.includes('All tests passed')) found.set('all', 'PASSED');
});

/** Matches `cmp folder/name.check.out other`. */
const COMPARED = py`^cmp\s+\S+/([^/\s]*\S)\.check\.out\s+\S`;

/** Each file that the build of tippecanoe compares is a test. If the build fails, the last of these files fails. */
const tippecanoe = reading((log, found) => {
  let last: string | undefined;
  let end = '';
  for (const line of linesOf(log)) {
    const name = COMPARED.exec(line)?.[1];
    if (name !== undefined) found.set(name, 'PASSED');
    last = name ?? last;
    end = line;
  }
  if (last !== undefined && (log.includes('make: ***') || end.includes('Error'))) found.set(last, 'FAILED');
});

// biome-ignore lint/suspicious/noControlCharactersInRegex: colour sequences begin with one, which some logs lack
const COLOR = /\x1b?\[[0-9;]*m/g;
const KAKOUNE = [
  ['[32m', 'PASSED'],
  ['[31m', 'FAILED'],
  ['[33m', 'SKIPPED'],
] as const;

/** The colour of a line gives the status. */
const kakoune = byLine((line, found) => {
  const status = KAKOUNE.find(([color]) => line.includes(color))?.[1];
  if (status === undefined || (status === 'FAILED' && line.includes('Summary:'))) return;
  const name = strip(line.replace(COLOR, ''));
  if (name !== '') found.set(name, status);
});

const LIBSASS = py`^(\S+):\s+Passed:\s*(\d+),\s*failed:\s*(\d+)`;

/** Reads `name: Passed: 3, failed: 1.`, the counts of one program. */
const libsass = byStrippedLine((line, found) => {
  const match = LIBSASS.exec(line);
  addCounted(found, `${match?.[1]}_pass_`, 'PASSED', countIn(match, 2));
  addCounted(found, `${match?.[1]}_fail_`, 'FAILED', countIn(match, 3));
});

export const LINES: Readers = { coost, jakttest, kakoune, libsass, tippecanoe };
