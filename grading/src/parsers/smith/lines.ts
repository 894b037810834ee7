/** Reads runners of C, C++, C# and JavaScript projects that print one test a line. Most readers serve a single project. */
import { withoutEscapes } from '../../text/escapes.ts';
import { fields, isSpace, linesOf, S, SPACE, strip, stripEnd } from '../../text/pythontext.ts';
import { byLine, byStrippedLine, type Reader, statuses } from '../reader.ts';
import { addCounted, countIn } from './madeup.ts';

const WORD = `([^${SPACE}]+)`;

/** Returns a reader that matches each stripped line. `groups` contains the numbers of the groups for name and status. */
const byPattern = (
  pattern: RegExp,
  statusOf: (word: string) => string,
  groups: { name: 1 | 2; status: 1 | 2 },
): Reader =>
  byStrippedLine((line, found) => {
    const match = pattern.exec(line);
    if (match) found.set(match[groups.name] ?? '', statusOf(match[groups.status] ?? ''));
  });

/** Returns a reader for a runner that names only the tests that passed. */
const passes = (pattern: RegExp): Reader => byPattern(pattern, () => 'PASSED', { name: 1, status: 1 });

/** Reads pikiwidb: `[ok]: name (12 ms)`. The time is a part of the name. */
export const redisTcl = byPattern(
  new RegExp(`^\\[(ok|err)\\]:${S}+([^]+)`),
  (word) => (word === 'ok' ? 'PASSED' : 'FAILED'),
  { name: 2, status: 1 },
);
/** Reads i2pd: `Running test-gost` before each program. The first failure ends the command. */
export const i2pd = passes(new RegExp(`^Running (test-[^${SPACE}]+)`));
/** Reads fastllm: `test softmax finished!`. */
export const fastllm = passes(new RegExp(`^test ${WORD} finished!`));
/** Reads async-profiler: `PASS [1/3] name …`. */
export const asyncProfiler = byPattern(
  new RegExp(`^(PASS|FAIL)${S}+\\[\\p{Nd}+\\/\\p{Nd}+\\]${S}+${WORD}`, 'u'),
  (word) => `${word}ED`,
  { name: 2, status: 1 },
);
/** Reads PlatformIO's table of environments. */
export const platformio = byPattern(
  new RegExp(`^${WORD}${S}+(SUCCESS|FAILED)${S}+\\p{Nd}`, 'u'),
  (word) => (word === 'SUCCESS' ? 'PASSED' : 'FAILED'),
  { name: 1, status: 2 },
);

/** Reads jakt, which prints failed and skipped tests by name, and passed tests as a number. */
export const jakttest = byStrippedLine((line, found) => {
  const match = JAKT.exec(line);
  if (match) found.set(match[2] ?? '', match[1] === 'FAIL' ? 'FAILED' : 'SKIPPED');
  addCounted(found, 'jakt_pass_', 'PASSED', countIn(PASSED.exec(line), 1));
}, withoutEscapes);
const JAKT = new RegExp(`^\\[${S}*(FAIL|SKIP)${S}*\\]${S}+([^]+)`);
const PASSED = new RegExp(`^(\\p{Nd}+)${S}+passed`, 'u');

/** Reads coost, where a test consists of cases. A failed expectation marks the test as failed, but not the case. */
export const coost: Reader = (log) => {
  const found = statuses();
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
  return found;
};
const COOST_TEST = new RegExp(`^>${S}*begin test:${S}+${WORD}`);
const COOST_CASE = new RegExp(`^${S}*case${S}+${WORD}:`);

/** Reads tippecanoe: each file that the build compares is a test. If the build fails, the last of these files fails. */
export const tippecanoe: Reader = (log) => {
  const found = statuses();
  let last: string | null = null;
  let end = '';
  for (const line of linesOf(log)) {
    const name = comparedFile(line);
    if (name !== null) found.set(name, 'PASSED');
    last = name ?? last;
    end = line;
  }
  if (last !== null && (log.includes('make: ***') || end.includes('Error'))) found.set(last, 'FAILED');
  return found;
};
const CHECKED = '.check.out';

/** Returns `name` for `cmp folder/name.check.out …`, or null. */
function comparedFile(line: string): string | null {
  const [command, path, other] = fields(line, 3);
  if (command !== 'cmp' || other === undefined || isSpace(line[0]) || !path?.endsWith(CHECKED)) return null;
  const name = path.slice(0, -CHECKED.length);
  const slash = name.lastIndexOf('/', name.length - 2);
  return slash < 1 ? null : name.slice(slash + 1);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colour sequences begin with one, which some logs lack
const COLOR = /\x1b?\[[0-9;]*m/g;

/** Reads kakoune: the colour of a line gives the status. */
export const kakoune = byLine((line, found) => {
  const status = line.includes('[32m')
    ? 'PASSED'
    : line.includes('[31m')
      ? 'FAILED'
      : line.includes('[33m')
        ? 'SKIPPED'
        : null;
  if (status === null || (status === 'FAILED' && line.includes('Summary:'))) return;
  const name = strip(line.replace(COLOR, ''));
  if (name !== '') found.set(name, status);
});

/** Reads libsass: `name: Passed: 3, failed: 1.`, the counts of one program. */
export const libsass = byStrippedLine((line, found) => {
  const match = LIBSASS.exec(line);
  addCounted(found, `${match?.[1]}_pass_`, 'PASSED', countIn(match, 2));
  addCounted(found, `${match?.[1]}_fail_`, 'FAILED', countIn(match, 3));
});
const LIBSASS = new RegExp(`^${WORD}:${S}+Passed:${S}*(\\p{Nd}+),${S}*failed:${S}*(\\p{Nd}+)`, 'u');

/** Reads Bun: `(pass) suite > name [0.12ms]`. If the line ends in `]`, the first `[` ends the name. */
export const bun = byStrippedLine((line, found) => {
  const match = BUN.exec(line);
  if (!match) return;
  const rest = match[2] ?? '';
  const bracket = rest.endsWith(']') ? rest.indexOf('[', 1) : -1;
  const name = bracket < 0 ? rest : stripEnd(rest.slice(0, bracket));
  found.set(name, match[1] === 'pass' ? 'PASSED' : 'FAILED');
});
const BUN = new RegExp(`^\\((pass|fail)\\)${S}+([^]+)`);

/** Reads pycdc: `*** name: PASS (3)`. An expected failure (XFAIL) counts as passed. */
export const pycdc = byStrippedLine((line, found) => {
  const match = PYCDC.exec(line);
  if (match) found.set(match[1] ?? '', match[2] === 'FAIL' ? 'FAILED' : 'PASSED');
}, withoutEscapes);
const PYCDC = new RegExp(`^\\*\\*\\*${S}+${WORD}:${S}+(PASS|XFAIL|FAIL)${S}`);

/** Reads VirtualClient (.NET): `Passed name [12 ms]`. A blank ends the name. */
export const dotnet = byStrippedLine((line, found) => {
  const status = ['Passed', 'Failed', 'Skipped'].find((word) => line.startsWith(word));
  const name = fields(line, 2)[1];
  if (status !== undefined && name !== undefined) found.set(name, status.toUpperCase());
});
