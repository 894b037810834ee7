/**
 * Multi-SWE-bench (24f493f): the outcomes are checked as a whole, also tests outside of the lists, then each test of the row must be in
 * its class again: p2p, f2p, s2p or n2p, by its status with the test patch and with the fix.
 */
import { type Case, type Judged, listsOf } from './judged.ts';

type Stages = NonNullable<Case['verdict']['stages']>;
type Class = NonNullable<Stages[string]['class']>;

const CLASSES: Record<string, Class> = { PASS: 'p2p', FAIL: 'f2p', SKIP: 's2p', NONE: 'n2p' };

export function classes({ read, verdict }: Case): Judged {
  const stages = new Map(Object.entries(verdict.stages ?? {}));
  const fix = new Map([...read.outcomes].map(([name, status]) => [name, stageWord(status)]));
  // The row's lists count; only of a row without any do its results tell the classes.
  const hasLists = [...stages.values()].some((statuses) => statuses.class !== undefined);
  const listed = [...stages].flatMap(([name, statuses]): [string, Class][] => {
    const own = hasLists ? (statuses.class ?? null) : classOf(statuses.test, statuses.fix);
    return own === null ? [] : [[name, own]];
  });
  const holds = ([name, own]: [string, Class]): boolean =>
    classOf(stages.get(name)?.test ?? 'NONE', fix.get(name) ?? 'NONE') === own;
  const sort = (entries: readonly [string, Class][]) => ({
    success: entries.filter(holds).map(([name]) => name),
    failure: entries.filter((entry) => !holds(entry)).map(([name]) => name),
  });
  return {
    resolved: isValid(stages, fix) && listed.every(holds),
    tests: listsOf(
      sort(listed.filter(([, own]) => own !== 'p2p')),
      sort(listed.filter(([, own]) => own === 'p2p')),
    ),
  };
}

/** `PASSED` and `PASS` are one word. */
const stageWord = (status: string): string =>
  ['PASS', 'FAIL', 'SKIP'].find((word) => status.startsWith(word)) ?? 'NONE';

const classOf = (test: string, fix: string): Class | null =>
  fix === 'PASS' ? (CLASSES[test] ?? null) : null;

/** There are outcomes, no test that passed fails, some test passes that did not, and none that passed without any patch fails. */
function isValid(stages: ReadonlyMap<string, Stages[string]>, fix: ReadonlyMap<string, string>): boolean {
  if (fix.size === 0) return false;
  let fixed = false;
  for (const [name, status] of fix) {
    const { run, test } = stages.get(name) ?? { run: 'NONE', test: 'NONE' };
    if (status === 'PASS' && test !== 'PASS') fixed = true;
    if (status !== 'FAIL') continue;
    if (test === 'PASS' || (run === 'PASS' && (test === 'NONE' || test === 'SKIP'))) return false;
  }
  return fixed;
}
