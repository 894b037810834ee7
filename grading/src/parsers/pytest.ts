/** Reads pytest's short summary. Harnesses have five variants: plain, with options, v2, pydantic's and matplotlib's. */
import { py } from '../text/pattern.ts';
import { fields } from '../text/pythontext.ts';
import { byLine, type Dialect, type Reader } from './reader.ts';

const STATUS_WORDS = ['FAILED', 'PASSED', 'SKIPPED', 'ERROR', 'XFAIL'] as const;
/** Count in `SKIPPED [3] path:line: reason`, a line that names no test. Only swebench 5.0.2 ignores the line. */
const SKIP_COUNT = py`^\[\d+\]$`;
const COLOR = /\[\p{Nd}+m/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the harness deletes control characters
const CONTROL = /[\x01-\x1f]/g;

/** Returns the status words that the harness reads. SWE-rebench V2 ignores XFAIL. */
const wordsOf = (dialect: Dialect): readonly string[] =>
  dialect === 'swe-rebench-v2' ? STATUS_WORDS.slice(0, 4) : STATUS_WORDS;
const startsWithStatus = (line: string, dialect: Dialect): boolean =>
  wordsOf(dialect).some((word) => line.startsWith(word));
const endsWithStatus = (line: string, dialect: Dialect): boolean =>
  wordsOf(dialect).some((word) => line.endsWith(word));

const skipsCount = (dialect: Dialect, status: string, name: string): boolean =>
  dialect === '5.0.2' && status === 'SKIPPED' && SKIP_COUNT.test(name);

/** Returns status and name of a summary line, or null. The status is the first field, which may end in a colon (`ERROR:`). */
function summary(line: string, dialect: Dialect): [status: string, name: string] | null {
  if (!startsWithStatus(line, dialect)) return null;
  const [status, name] = fields(line.startsWith('FAILED') ? line.replaceAll(' - ', ' ') : line, 2);
  if (status === undefined || name === undefined || skipsCount(dialect, status, name)) return null;
  return [status, name];
}

const reader = (clean: (line: string) => string, rename: (name: string) => string): Reader =>
  byLine((line, found, { dialect }) => {
    const result = summary(clean(line), dialect);
    if (result) found.set(rename(result[1]), result[0]);
  });

const PYTEST_PARSERS = new Set([
  'pytest',
  'pytest_options',
  'pytest_v2',
  'pytest_nebo',
  'pytest_pydantic',
  'pytest_rA',
  'matplotlib',
  'seaborn',
  'python-pytest-v',
  'python-pytest-rA',
  'python-xdist-v',
  'cpp-pytest',
]);
/** Returns whether the parser reads the output of pytest. `parser` is null if no parser reads the log. */
export const readsPytest = (parser: string | null): boolean => parser !== null && PYTEST_PARSERS.has(parser);

const same = (text: string): string => text;

/** Shortens an absolute path in the brackets of a name to the last component, because paths differ between machines. */
function shortenOption(name: string): string {
  const open = name.indexOf('[');
  const close = name.lastIndexOf(']');
  if (open < 0 || close < open) return name;
  let option = name.slice(open + 1, close);
  if (option.startsWith('/') && !option.startsWith('//') && !option.includes('*')) {
    option = option.slice(option.lastIndexOf('/'));
  }
  return `${name.slice(0, open)}[${option}]`;
}

export const pytest = reader(same, same);
export const pytestOptions = reader(same, shortenOption);
export const matplotlib = reader(
  (line) => line.replaceAll('MouseButton.LEFT', '1').replaceAll('MouseButton.RIGHT', '3'),
  same,
);

export const withoutControls = (line: string): string => line.replace(COLOR, '').replace(CONTROL, '');

/** Reads the status at the start or, as old pytest prints it, at the end of a line. */
export const pytestV2 = byLine((raw, found, { dialect }) => {
  const line = withoutControls(raw);
  if (dialect === '5.0.2') readV2Latest(line, found);
  else readV2(line, found, dialect);
});

/** Reads a log like {@link pytestV2}, but removes the bracket of `FAILED [ 50%]` first. Only SWE-Gym has this parser. */
export const pytestPydantic = byLine((raw, found, { dialect }) =>
  readV2(dropFailedBrackets(withoutControls(raw)), found, dialect),
);

const INDEXES_UNCHECKED = new Set<Dialect>(['swegym', 'swe-rebench-v2']);

function readV2(line: string, found: Map<string, string>, dialect: Dialect): void {
  const first = startsWithStatus(line, dialect);
  if (!first && !endsWithStatus(line, dialect)) return;
  const parts = fields(first && line.startsWith('FAILED') ? line.replaceAll(' - ', ' ') : line, 2);
  const [one, two] = parts;
  if (one === undefined || two === undefined) {
    // These harnesses take the second field without a check, and the exception discards the whole log.
    if (INDEXES_UNCHECKED.has(dialect)) throw new RangeError('list index out of range');
    return;
  }
  if (first) found.set(two, one);
  else found.set(one, two);
}

/** Reads a line as swebench 5.0.2 does: names may contain blanks, and the reason after ` - ` is dropped. */
function readV2Latest(line: string, found: Map<string, string>): void {
  if (startsWithStatus(line, '5.0.2')) {
    const cut = line.startsWith('FAILED') ? line.split(' - ', 1)[0] : line;
    const [status, ...name] = fields(cut ?? '');
    const [first] = name;
    if (status === undefined || first === undefined || skipsCount('5.0.2', status, first)) return;
    found.set(name.join(' '), status);
  } else if (endsWithStatus(line, '5.0.2')) {
    const parts = fields(line);
    const status = parts.pop();
    if (status !== undefined && parts.length > 0) found.set(parts.join(' '), status);
  }
}

const FAILED_BRACKETS = new RegExp(py`FAILED\s*\[[^\]]*\]`, 'gu');

/** Replaces every `FAILED [anything]` by `FAILED`. Behind the last `]`, each search would read the rest of the line. */
function dropFailedBrackets(line: string): string {
  const end = line.lastIndexOf(']') + 1;
  return line.slice(0, end).replace(FAILED_BRACKETS, 'FAILED') + line.slice(end);
}
