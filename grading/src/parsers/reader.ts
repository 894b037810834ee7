/** The type that all log parsers share: a reader takes a log and returns the outcome of each test. */
import type { Instance } from '@swefarm/shared';

/** The harness whose reading is reproduced; readers differ in details between them. */
export type Dialect = '4.1.0' | '5.0.2' | 'swegym' | 'swesmith';

export type ReaderContext = {
  dialect: Dialect;
  instance: Pick<Instance, 'instance_id' | 'repo' | 'version' | 'test_patch'>;
};

/**
 * Test name → status word; later lines overwrite earlier ones. A Map, because names are hostile text (`__proto__`).
 * Throws where the harness itself would raise, which means that it writes no report.
 */
export type Reader = (log: string, context: ReaderContext) => Map<string, string>;

export const statuses = (): Map<string, string> => new Map();
