/** The type of all log parsers. A reader takes a log and returns the outcome of each test. */
import type { Instance } from '@swefarm/shared';
import { linesOf, strip } from '../text/pythontext.ts';

/** Harness whose log parsing a reader reproduces. */
export type Dialect =
  | '4.1.0'
  | '5.0.2'
  | 'swegym'
  | 'swesmith'
  | 'r2e-gym'
  | 'swe-rebench'
  | 'swe-rebench-v2'
  | 'swe-lego'
  | 'swe-bench-live';

export type ReaderContext = {
  dialect: Dialect;
  instance: Pick<Instance, 'instance_id' | 'repo' | 'version' | 'test_patch'>;
};

/**
 * Returns test name → status word; the last line about a test counts. The result is a Map because names are hostile text (`__proto__`).
 * A reader throws RangeError or SyntaxError where the harness raises an exception and writes no report.
 */
export type Reader = (log: string, context: ReaderContext) => Map<string, string>;

export const statuses = (): Map<string, string> => new Map();

type ReadLine = (line: string, found: Map<string, string>, context: ReaderContext) => void;

/** Returns a reader that parses each line separately. `clean` transforms the whole log first. */
export const byLine =
  (read: ReadLine, clean?: (log: string) => string): Reader =>
  (log, context) => {
    const found = statuses();
    for (const line of linesOf(clean ? clean(log) : log)) read(line, found, context);
    return found;
  };

/** Returns a reader like {@link byLine}, but `read` gets each line without leading and trailing blanks. */
export const byStrippedLine = (read: ReadLine, clean?: (log: string) => string): Reader =>
  byLine((line, found, context) => read(strip(line), found, context), clean);
