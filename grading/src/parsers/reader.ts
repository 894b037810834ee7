/** The type of all log parsers. A reader takes a log and returns the outcome of each test. */
import type { Instance } from '@swefarm/shared';
import { linesOf, strip } from '../text/pythontext.ts';

/** The harness whose parsing is reproduced. */
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
 * Returns test name → status word; later lines overwrite earlier ones. It is a Map because names are hostile text (`__proto__`).
 * A reader throws RangeError or SyntaxError where the harness raises, and the harness then writes no report.
 */
export type Reader = (log: string, context: ReaderContext) => Map<string, string>;

export const statuses = (): Map<string, string> => new Map();

type ReadLine = (line: string, found: Map<string, string>, context: ReaderContext) => void;

/** Makes a reader that takes each line by itself. `clean` prepares the whole log. */
export const byLine =
  (read: ReadLine, clean?: (log: string) => string): Reader =>
  (log, context) => {
    const found = statuses();
    for (const line of linesOf(clean ? clean(log) : log)) read(line, found, context);
    return found;
  };

/** As {@link byLine}, for lines without the blanks around them. */
export const byStrippedLine = (read: ReadLine, clean?: (log: string) => string): Reader =>
  byLine((line, found, context) => read(strip(line), found, context), clean);
