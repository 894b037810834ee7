/**
 * Judges as Scale-SWE does (AweAgent bd17814): resolved if the script prints that the tests passed, or if every test of both lists passed
 * in the JUnit file. If that file has no outcomes, the last summary line of pytest must count passes and no failures.
 */
import { pytestCounts } from '../parsers/summaryline.ts';
import { fields } from '../text/pythontext.ts';
import type { Case, Judged } from './judged.ts';
import { isResolved, listsOf } from './testsstatus.ts';

/** Tag that the script prints. The last match counts, because tests may print the tag before the script does. */
const RESULT_TAG = /<pytest>(true|false)<\/pytest>/g;

export function junitIds({ read, evidence, instance }: Case): Judged {
  const statusOf = findByIds(read.outcomes);
  const tests = listsOf(instance, (test) => statusOf(test) === 'PASSED');
  if ([...evidence.log.matchAll(RESULT_TAG)].at(-1)?.[1] === 'true') return { resolved: true, tests };
  if (read.outcomes.size === 0) return { resolved: pytestCounts(evidence.log).allPassed, tests: null };
  const ids = instance.FAIL_TO_PASS.length + instance.PASS_TO_PASS.length;
  return { resolved: ids > 0 && isResolved(tests), tests };
}

/** Converts an id so that `tests/test_a.py::T::test_x` and JUnit's `tests.test_a.T::test_x` become equal. */
const normal = (id: string): string => id.replaceAll('.py', '').replaceAll('::', '.').replaceAll('/', '.');

/** Returns a function that finds a status by the id, by the normalised id, or by that id without white space. Skipped tests are ignored. */
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
