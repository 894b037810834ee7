/**
 * Scale-SWE (AweAgent bd17814): the script says so itself; else every test of both lists is found among the outcomes of a JUnit file and
 * passed there; else, without any outcome, the last summary line of pytest has passes and no failures.
 */
import { pytestCounts } from '../parsers/summaryline.ts';
import { fields } from '../text/pythontext.ts';
import { type Case, type Judged, listsBy } from './judged.ts';
import { isResolved } from './testsstatus.ts';

/** The script says it last: what a test printed before does not count. */
const SAID = /<pytest>(true|false)<\/pytest>/g;

export function junitIds({ read, evidence, instance }: Case): Judged {
  const statusOf = findByIds(read.outcomes);
  const tests = listsBy(instance, (test) => statusOf(test) === 'PASSED');
  if ([...evidence.log.matchAll(SAID)].at(-1)?.[1] === 'true') return { resolved: true, tests };
  if (read.outcomes.size === 0) return { resolved: pytestCounts(evidence.log).allPassed, tests: null };
  const ids = instance.FAIL_TO_PASS.length + instance.PASS_TO_PASS.length;
  return { resolved: ids > 0 && isResolved(tests), tests };
}

/** `tests/test_a.py::T::test_x` and JUnit's `tests.test_a.T::test_x` in one form. */
const normal = (id: string): string => id.replaceAll('.py', '').replaceAll('::', '.').replaceAll('/', '.');

/** Status of the outcome that an id names: by its own text, else normalised, else without white space. Skipped ones are not there. */
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
