/**
 * Scale-SWE (AweAgent bd17814): the script prints that the tests passed; else every test of both lists passed in the JUnit file; else,
 * without any outcome, the last summary line of pytest has passes and no failures.
 */
import { pytestCounts } from '../parsers/summaryline.ts';
import { fields } from '../text/pythontext.ts';
import type { Case, Judged } from './judged.ts';
import { isResolved, listsOf } from './testsstatus.ts';

/** The last match counts, because tests may print the tag before the script does. */
const RESULT_TAG = /<pytest>(true|false)<\/pytest>/g;

export function junitIds({ read, evidence, instance: { FAIL_TO_PASS, PASS_TO_PASS } }: Case): Judged {
  const statusOf = findByIds(read.outcomes);
  const tests = listsOf(FAIL_TO_PASS, PASS_TO_PASS, (test) => statusOf(test) === 'PASSED');
  if ([...evidence.log.matchAll(RESULT_TAG)].at(-1)?.[1] === 'true') return { resolved: true, tests };
  if (read.outcomes.size === 0) return { resolved: pytestCounts(evidence.log).allPassed, tests: null };
  const ids = FAIL_TO_PASS.length + PASS_TO_PASS.length;
  return { resolved: ids > 0 && isResolved(tests), tests };
}

/** `tests/test_a.py::T::test_x` and JUnit's `tests.test_a.T::test_x` become equal. */
const normal = (id: string): string => id.replaceAll('.py', '').replaceAll('::', '.').replaceAll('/', '.');

/** Finds the status of a test by its id, else by the normalised id, else without white space. Skipped tests are ignored. */
export function findByIds(outcomes: ReadonlyMap<string, string>): (id: string) => string | undefined {
  const byName = new Map<string, string>();
  const byLetters = new Map<string, string>();
  const add = (map: Map<string, string>, key: string, status: string): void => {
    if (!map.has(key) || status !== 'PASSED') map.set(key, status);
  };
  for (const [name, status] of outcomes) {
    if (status === 'SKIPPED') continue;
    add(byName, normal(name), status);
    add(byLetters, fields(normal(name)).join(''), status);
  }
  return (id) => {
    const own = outcomes.get(id);
    if (own !== undefined && own !== 'SKIPPED') return own;
    return byName.get(normal(id)) ?? byLetters.get(fields(normal(id)).join(''));
  };
}
