/** Reads Django's test runner. An outcome is at the end of the test's line, or on a later line after other output. */
import { pairs, py } from '../text/pattern.ts';
import { before, fields, strip, strippedLines, stripStart } from '../text/pythontext.ts';
import { reading } from './reader.ts';

const PASS_SUFFIXES = [' ... ok', ' ... OK', ' ...  OK'];
const VERSION_TEST = '--version is equivalent to version';
const TORN_MIGRATION = 'Applying sites.0002_alter_domain_unique...test_no_migrations';

export const django = reading((log, found) => {
  let previous: string | null = null;
  for (const line of strippedLines(log)) previous = readLine(line, previous, found);
  for (const name of tornTests(log)) found.set(name, 'PASSED');
});

/** Reads one line and returns the test to which a later line `ok` belongs; null if there is none. */
function readLine(line: string, previous: string | null, found: Map<string, string>): string | null {
  if (line.includes(VERSION_TEST)) found.set(VERSION_TEST, 'PASSED');
  const open = line.includes(' ... ') ? before(line, ' ... ') : previous;

  let rest = line;
  const suffix = PASS_SUFFIXES.find((candidate) => line.endsWith(candidate));
  if (suffix !== undefined) {
    if (line.startsWith(TORN_MIGRATION)) rest = strip(line.slice(line.indexOf('...') + 3));
    found.set(rest.endsWith(suffix) ? rest.slice(0, -suffix.length) : rest, 'PASSED');
  }
  if (rest.includes(' ... skipped')) found.set(before(rest, ' ... skipped'), 'SKIPPED');
  if (rest.endsWith(' ... FAIL')) found.set(before(rest, ' ... FAIL'), 'FAILED');
  if (rest.startsWith('FAIL:')) found.set(secondField(rest), 'FAILED');
  if (rest.endsWith(' ... ERROR')) found.set(before(rest, ' ... ERROR'), 'ERROR');
  if (rest.startsWith('ERROR:')) found.set(secondField(rest), 'ERROR');
  if (stripStart(rest).startsWith('ok') && open !== null) found.set(open, 'PASSED');
  return open;
}

/** Returns the second field. The harness takes the field without a check, so a bare `FAIL:` raises an exception. */
function secondField(line: string): string {
  const name = fields(line, 2)[1];
  if (name === undefined) throw new RangeError('list index out of range');
  return name;
}

const INSTALLED = new RegExp(py`(?<![^\n])(.*?)\s\.\.\.\sTesting against Django installed in `, 'gu');
const SILENCED = / silenced\)\.\nok(?![^\n])/g;
const SERVER_ERROR = new RegExp(
  py`(?<![^\n])(.*?)\s\.\.\.\sInternal Server Error: /(.*)(\nok(?![^\n]))?`,
  'gu',
);
const CHECKED = new RegExp(
  py`(?<![^\n])(.*?)\s\.\.\.\sSystem check identified no issues \(0 silenced\)\nok(?![^\n])`,
  'gu',
);

/** Yields the tests that passed although other text separates their ` ... ` from the line `ok`. */
function* tornTests(log: string): Generator<string> {
  if (log.includes('Testing against Django installed in '))
    for (const [[, name = '']] of pairs(log, INSTALLED, SILENCED)) yield name;
  if (log.includes('Internal Server Error: /'))
    for (const [, name = '', path, ok] of log.matchAll(SERVER_ERROR))
      if (ok && path?.endsWith('/')) yield name;
  if (log.includes('System check identified no issues'))
    for (const [, name = ''] of log.matchAll(CHECKED)) yield name;
}
