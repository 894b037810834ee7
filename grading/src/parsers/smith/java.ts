/** Reads Maven's surefire lines, and the JUnit XML files that a Gradle command prints after its tests. */
import { py } from '../../text/pattern.ts';
import { byStrippedLine, reading } from '../reader.ts';
import { descendants, type Element, readXml } from '../xml.ts';
import { documents } from '../xmllogs.ts';

/** Matches `[INFO] name -- Time elapsed: 0.1 s`. If the name is empty, two blanks precede the dashes. */
const TIMED = py`^\[(?:INFO|ERROR)\](?:\s+(\S(?:.*?\S)??)|\s)\s+--\s+Time elapsed:\s+[\d.]+\s`;
const OLD = py`^([a-zA-Z0-9_]+)\(([a-zA-Z0-9_.]+)\)\s+Time elapsed:\s+[\d.]+\s+sec`;

/** Only `<<< FAILURE!` marks a failed test. A test that ends in an error counts as passed, as in the harness. */
export const surefire = byStrippedLine((line, found) => {
  const timed = TIMED.exec(line);
  const old = OLD.exec(line);
  const failed = line.startsWith('[ERROR]') && line.endsWith('<<< FAILURE!');
  if (timed) found.set(timed[1] ?? '', failed ? 'FAILED' : 'PASSED');
  if (old) found.set(`${old[2]}.${old[1]}`, 'PASSED');
});

/** Reads every `<?xml … </testsuite>` in the log and ignores invalid XML. */
export const gradleXml = reading((log, found) => {
  for (const xml of documents(log, '<?xml version', '</testsuite>')) readSuite(xml, found);
});

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
