/** Reads runners that show the suites of a test by indentation: jest in wp-calypso, and karma. */
import { indentOf, isSpace, linesOf, strip } from '../text/pythontext.ts';
import { reading } from './reader.ts';

/** Maximum number of characters of all names of one log. */
const MOST_CHARACTERS = 40_000_000;

/** Limits the work of a reader that joins names: many tests below a long path take quadratic time and memory. */
export class NameBudget {
  #left = MOST_CHARACTERS;

  add(path: readonly string[]): void {
    for (const name of path) this.#left -= name.length + 1;
    if (this.#left < 0) throw new RangeError('the names of the tests have too many characters');
  }
}

/** Stack of the titles above a line, ordered by indentation. */
export class SuiteStack {
  #suites: { name: string; indent: number }[] = [];
  readonly #work = new NameBudget();

  /** Adds a title and closes all titles with the same or a deeper indentation. */
  open(line: string): void {
    const indent = indentOf(line);
    while ((this.#suites.at(-1)?.indent ?? -1) >= indent) this.#suites.pop();
    this.#suites.push({ name: strip(line), indent });
  }

  /** Returns the open titles. @throws RangeError if all returned names exceed the budget, as in a hostile log */
  names(): string[] {
    const names = this.#suites.map((suite) => suite.name);
    this.#work.add(names);
    return names;
  }
}

const JEST = ' ./node_modules/.bin/jest ';

/** Reads the block after each command of jest. A name consists of the suites and the title, joined by ` - `. */
export const calypso = reading((log, found) => {
  const suites = new SuiteStack();
  for (const block of log.split(JEST).slice(1)) readBlock(block, suites, found);
});

function readBlock(block: string, suites: SuiteStack, found: Map<string, string>): void {
  for (const line of linesOf(block)) {
    if (line.startsWith('Test Suites') || line.startsWith('  ● ')) return;
    const test = strip(line);
    const mark = test[0];
    if (mark === '✓' || mark === '✕') {
      const name = testName(line, mark);
      found.set(strip([suites.names().join(' - '), name].join(' - ')), mark === '✓' ? 'PASSED' : 'FAILED');
    } else if (indentOf(line) > 0) suites.open(line);
  }
}

const TIME = /\(\d+ms\)/;

/** Returns the title without a time. @throws RangeError unless blanks surround the mark and any time is last, as in the harness */
function testName(line: string, mark: string): string {
  const at = line.indexOf(mark);
  if (at === 0 || !isSpace(line[at + 1])) throw new RangeError('no match');
  const name = line.slice(at + 2);
  if (!TIME.test(line)) return name;
  const open = name.lastIndexOf('(');
  if (open < 0 || !/^\(\d+ms\)$/.test(name.slice(open))) throw new RangeError('no match');
  return name.slice(0, open);
}

/** Reads the lines from `Starting browser` to `SUMMARY:`. A line without a mark opens or closes a suite. */
export const karma = reading((log, found) => {
  const suite: string[] = [];
  let indent = -1;
  let started = false;
  for (const line of linesOf(log)) {
    if (line.startsWith('SUMMARY:')) break;
    if (line.includes('Starting browser')) {
      started = true;
      continue;
    }
    const parts = started ? karmaLine(line) : null;
    if (!parts) continue;
    if (parts.status !== null) found.set([...suite, parts.name].join(' > '), parts.status);
    else if (parts.indent > indent && parts.indent > 0) {
      indent = parts.indent;
      suite.push(parts.name);
    } else if (parts.indent < indent && parts.indent > 0) {
      indent = parts.indent;
      if (suite.pop() === undefined) throw new RangeError('pop from empty list');
    }
  }
});

/** Parses a test (mark, blank, name) or a title; null for other lines. One blank before a title does not count as indentation. */
function karmaLine(line: string): { indent: number; status: string | null; name: string } | null {
  const indent = indentOf(line);
  const mark = line[indent];
  if ((mark === '✔' || mark === '✖') && isSpace(line[indent + 1])) {
    return { indent, status: mark === '✔' ? 'PASSED' : 'FAILED', name: line.slice(indent + 2) };
  }
  return indent > 0 ? { indent: indent - 1, status: null, name: line.slice(indent) } : null;
}
