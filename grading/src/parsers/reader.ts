/** The type of all log parsers: a reader takes a log and returns the outcome of each test. */
import type { Instance } from '@swefarm/shared';

/** The harness whose parsing is reproduced; readers differ in details between harnesses. */
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
 * Test name → status word; later lines overwrite earlier ones. It is a Map because names are hostile text (`__proto__`).
 * A reader throws where the harness itself would raise, which means that the harness writes no report.
 */
export type Reader = (log: string, context: ReaderContext) => Map<string, string>;

export const statuses = (): Map<string, string> => new Map();
