/** Reads Maven's surefire lines, and the JUnit XML files that a Gradle command prints after its tests. */
import { py } from '../../text/pattern.ts';
import { isSpace, strip } from '../../text/pythontext.ts';
import { byStrippedLine, type Reader, statuses } from '../reader.ts';
import { type Element, readXml } from '../xml.ts';

const HEAD = py`^\[(?:INFO|ERROR)\](\s+)`;
const ELAPSED = new RegExp(py`--\s+Time elapsed:\s+[\d.]+\s`, 'uy');
const OLD = py`^([a-zA-Z0-9_]+)\(([a-zA-Z0-9_.]+)\)\s+Time elapsed:\s+[\d.]+\s+sec`;

/** Only `<<< FAILURE!` marks a failed test. A test that ends in an error counts as passed, as in the harness. */
export const surefire = byStrippedLine((line, found) => {
  if (line.startsWith('[')) {
    const failed = line.endsWith('<<< FAILURE!') && line.startsWith('[ERROR]');
    const name = failed || line.includes('Time elapsed:') ? timedName(line) : null;
    if (name !== null) found.set(name, failed ? 'FAILED' : 'PASSED');
  } else if (line.includes('Time elapsed:') && line.includes('(')) {
    const match = OLD.exec(line);
    if (match) found.set(`${match[2]}.${match[1]}`, 'PASSED');
  }
});

/** Returns the name in `[INFO] name -- Time elapsed: 0.1 s`, up to the first ` -- Time elapsed`; null for any other line. */
function timedName(line: string): string | null {
  const head = HEAD.exec(line);
  if (!head) return null;
  const from = head[0].length;
  for (let at = line.indexOf('--', from); at >= 0; at = line.indexOf('--', at + 1)) {
    if (at === from || !isSpace(line[at - 1])) continue;
    ELAPSED.lastIndex = at;
    if (ELAPSED.test(line)) return strip(line.slice(from, at));
  }
  // If the name is empty, two blanks precede `-- Time elapsed`.
  ELAPSED.lastIndex = from;
  return (head[1] ?? '').length > 1 && ELAPSED.test(line) ? '' : null;
}

const OPEN = '<?xml version';
const CLOSE = '</testsuite>';

/** Reads every `<?xml … </testsuite>` in the log and ignores invalid XML. */
export const gradleXml: Reader = (log) => {
  const found = statuses();
  for (let at = log.indexOf(OPEN); at >= 0; at = log.indexOf(OPEN, at)) {
    const close = log.indexOf(CLOSE, at);
    if (close < 0) break;
    readSuite(log.slice(at, close + CLOSE.length), found);
    at = close + CLOSE.length;
  }
  return found;
};

function readSuite(text: string, found: Map<string, string>): void {
  let suite: Element;
  try {
    suite = readXml(text);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return;
    throw error;
  }
  const suiteName = suite.attributes.get('name') ?? '';
  for (const test of descendants(suite, 'testcase')) {
    const has = (...names: string[]): boolean => test.children.some((child) => names.includes(child.name));
    const status = has('failure', 'error') ? 'FAILED' : has('skipped') ? 'SKIPPED' : 'PASSED';
    const owner = test.attributes.get('classname') ?? suiteName;
    found.set(`${owner}.${test.attributes.get('name') ?? ''}`, status);
  }
}

function* descendants(element: Element, name: string): Generator<Element> {
  if (element.name === name) yield element;
  for (const child of element.children) yield* descendants(child, name);
}
