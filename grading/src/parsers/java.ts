/** Reads Maven, Ant and Gradle. Maven lists no passing tests, so each test runs in a separate build, whose result is the outcome. */
import {
  fields,
  isSpace,
  linesOf,
  S,
  strip,
  stripEnd,
  strippedLines,
  stripStart,
} from '../text/pythontext.ts';
import { byStrippedLine, type Reader, statuses } from './reader.ts';

const NO_TEST = '---NO TEST NAME FOUND YET---';

export const maven: Reader = (log, { dialect }) => {
  const found = statuses();
  const pairing = dialect === '5.0.2' ? inOrder(found) : lastNamed(found);
  for (const line of strippedLines(log)) {
    const name = lastTestOption(line);
    if (name !== null) pairing.name(name);
    if (line.endsWith('BUILD SUCCESS')) pairing.end('PASSED');
    else if (line.endsWith('BUILD FAILURE')) pairing.end('FAILED');
  }
  pairing.close();
  return found;
};

type Pairing = { name: (name: string) => void; end: (status: string) => void; close: () => void };

/** Assigns the result of a build to the last test command before the result. */
function lastNamed(found: Map<string, string>): Pairing {
  let current = NO_TEST;
  return {
    name: (name) => {
      current = name;
    },
    end: (status) => found.set(current, status),
    close: () => undefined,
  };
}

/** Assigns results to commands in order, as swebench 5.0.2 does. A result that precedes its command is assigned at the end. */
function inOrder(found: Map<string, string>): Pairing {
  const names: string[] = [];
  const ends: string[] = [];
  let next = 0;
  return {
    name: (name) => names.push(name),
    end: (status) => {
      const name = names[next];
      if (name === undefined) ends.push(status);
      else {
        found.set(name, status);
        next++;
      }
    },
    close: () => {
      for (const status of ends) {
        const name = names[next++];
        if (name !== undefined) found.set(name, status);
      }
    },
  };
}

/** Returns the last non-empty value of `-Dtest=`, or null. */
function lastTestOption(line: string): string | null {
  let at = line.lastIndexOf('-Dtest=');
  while (at >= 0) {
    const value = at + '-Dtest='.length;
    if (value < line.length && !isSpace(line[value])) return fields(line.slice(value), 1)[0] ?? null;
    at = at > 0 ? line.lastIndexOf('-Dtest=', at - 1) : -1;
  }
  return null;
}

/** Reads `[junit] [PASS] name`. */
export const ant = byStrippedLine((line, found) => {
  if (!line.startsWith('[junit]')) return;
  const rest = stripStart(line.slice('[junit]'.length));
  const match = /^\[(PASS|FAIL|ERR)\]/.exec(rest);
  if (!match || rest.length === line.length - '[junit]'.length || !isSpace(rest[match[0].length])) return;
  found.set(stripStart(rest.slice(match[0].length)), match[1] === 'PASS' ? 'PASSED' : 'FAILED');
});

/** Reads `Suite > name PASSED`. Ignores lines that begin with `>`. */
export const gradle: Reader = (log, { dialect }) => {
  const found = statuses();
  let pending: string | null = null;
  for (const raw of linesOf(log)) {
    const line = dialect === 'swe-rebench-v2' ? withoutSeconds(strip(raw)) : strip(raw);
    const status = line.endsWith('PASSED') ? 'PASSED' : line.endsWith('FAILED') ? 'FAILED' : null;
    const name = status === null ? null : gradleName(line);
    if (status !== null && name !== null) {
      found.set(name, status);
      pending = null;
    } else if (dialect === '5.0.2') {
      // In logs of swebench 5.0.2, the name and the status of a test may be on separate lines.
      const [first, middle, last, more] = fields(line, 4);
      if (middle === '>' && last !== undefined && more === undefined && !first?.startsWith('>'))
        pending = line;
      else if (pending !== null && status === line) {
        found.set(pending, status);
        pending = null;
      }
    }
  }
  return found;
};

const SECONDS = new RegExp(`${S}\\(\\p{Nd}+(?:\\.\\p{Nd}+)?s\\)$`, 'u');

/** Removes the time after the status, which only SWE-rebench V2 allows. */
function withoutSeconds(line: string): string {
  const open = line.lastIndexOf('(') - 1;
  return open > 0 && SECONDS.test(line.slice(open)) ? stripEnd(line.slice(0, open)) : line;
}

/** Returns the name before the status; null if the name has fewer than two characters or begins with `>`. */
function gradleName(line: string): string | null {
  const end = line.length - 'PASSED'.length - 1;
  return end >= 2 && isSpace(line[end]) && !line.startsWith('>') ? line.slice(0, end) : null;
}
