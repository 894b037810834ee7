/** Runners that show a test's suites by indentation: calypso (jest) and karma. */
import { indentOf, isSpace, linesOf, strip } from '../text/pythontext.ts';
import { type Reader, statuses } from './reader.ts';

/** Limit for the characters of all names of one log. */
const MOST_CHARACTERS = 40_000_000;

/** Bounds the work of a reader that joins names: a long path times many tests is quadratic in the log. */
export class NameBudget {
  #left = MOST_CHARACTERS;

  add(path: readonly string[]): void {
    for (const name of path) this.#left -= name.length + 1;
    if (this.#left < 0) throw new RangeError('the names of the tests have too many characters');
  }
}

/** The titles above a line, ordered by indentation. */
export class SuiteStack {
  #suites: { name: string; indent: number }[] = [];
  readonly #work = new NameBudget();

  /** A new title closes all titles with the same or a deeper indentation. */
  open(line: string): void {
    const indent = indentOf(line);
    while ((this.#suites.at(-1)?.indent ?? -1) >= indent) this.#suites.pop();
    this.#suites.push({ name: strip(line), indent });
  }

  /** @throws RangeError if all returned names exceed the budget, as only a hostile log makes them */
  names(): string[] {
    const names = this.#suites.map((suite) => suite.name);
    this.#work.add(names);
    return names;
  }
}

const JEST = ' ./node_modules/.bin/jest ';

/** The blocks after each call of jest; a name is the suites and the title, joined by ` - `. */
export const calypso: Reader = (log) => {
  const found = statuses();
  const suites = new SuiteStack();
  for (const block of log.split(JEST).slice(1)) readBlock(block, suites, found);
  return found;
};

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

/** The harness's pattern needs blanks before the mark and one after it; a time must be at the line's end. */
function testName(line: string, mark: string): string {
  const at = line.indexOf(mark);
  if (at === 0 || !isSpace(line[at + 1])) throw new RangeError('no match');
  const name = line.slice(at + 2);
  if (!TIME.test(line)) return name;
  const open = name.lastIndexOf('(');
  if (open < 0 || !/^\(\d+ms\)$/.test(name.slice(open))) throw new RangeError('no match');
  return name.slice(0, open);
}

/** Reads from the start of the browser to the summary; a line without a mark opens or closes suites. */
export const karma: Reader = (log) => {
  const found = statuses();
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
  return found;
};

/** Blanks, a mark, a blank and a name; or blanks and a title, where the last blank does not count. */
function karmaLine(line: string): { indent: number; status: string | null; name: string } | null {
  const indent = indentOf(line);
  const mark = line[indent];
  if ((mark === '✔' || mark === '✖') && isSpace(line[indent + 1])) {
    return { indent, status: mark === '✔' ? 'PASSED' : 'FAILED', name: line.slice(indent + 2) };
  }
  return indent > 0 ? { indent: indent - 1, status: null, name: line.slice(indent) } : null;
}
