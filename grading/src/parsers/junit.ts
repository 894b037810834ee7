/** Reads a JUnit XML file as pytest and most other runners write it. */
import { statuses } from './reader.ts';
import { scanXml } from './xml.ts';

export type JUnitCase = {
  classname: string;
  name: string;
  /** Attribute `file`; '' if the runner does not write the attribute. */
  file: string;
  /** Worst status of the elements inside; PASSED if none has a status. pytest writes `skipped` for XFAIL too. */
  status: 'PASSED' | 'FAILED' | 'ERROR' | 'SKIPPED';
};

/**
 * Returns every `testcase` in document order.
 *
 * @throws SyntaxError if the text is not well-formed or has a document type; RangeError if it exceeds the limits of `scanXml`
 */
export function readJUnit(xml: string): JUnitCase[] {
  const cases: JUnitCase[] = [];
  let current: JUnitCase | null = null;
  scanXml(xml, {
    open: (tag, attributes) => {
      if (tag === 'testcase') {
        const text = (key: string): string => attributes.get(key) ?? '';
        current = { classname: text('classname'), name: text('name'), file: text('file'), status: 'PASSED' };
        cases.push(current);
      } else if (current) current.status = worse(current.status, tag);
    },
    close: (tag) => {
      if (tag === 'testcase') current = null;
    },
  });
  return cases;
}

function worse(status: JUnitCase['status'], tag: string): JUnitCase['status'] {
  if (tag === 'failure') return 'FAILED';
  if (tag === 'error') return status === 'FAILED' ? status : 'ERROR';
  return tag === 'skipped' && status === 'PASSED' ? 'SKIPPED' : status;
}

const RANK: Record<string, number> = { SKIPPED: 0, PASSED: 1, ERROR: 2, FAILED: 3 };

/**
 * Returns `classname::name` → status; the key of a case without a class is the name. pytest writes a second entry if the teardown of a
 * test fails, so the worst entry counts. A skipped entry counts only if the test has no other entry.
 */
export function junitOutcomes(cases: readonly JUnitCase[]): Map<string, string> {
  const found = statuses();
  for (const { classname, name, status } of cases) {
    const key = classname === '' ? name : `${classname}::${name}`;
    if ((RANK[status] ?? 0) >= (RANK[found.get(key) ?? ''] ?? 0)) found.set(key, status);
  }
  return found;
}
