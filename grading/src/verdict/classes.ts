/**
 * Judges as Multi-SWE-bench does (24f493f): first checks all outcomes together, including tests outside of the lists. Then each listed
 * test must have the class (p2p, f2p, s2p or n2p) of the row. The class follows from the statuses with the test patch and with the fix.
 */
import type { Case, Judged } from './judged.ts';
import { listsOf } from './testsstatus.ts';

type Stages = NonNullable<Case['verdict']['stages']>;
type Class = NonNullable<Stages[string]['class']>;

const CLASSES: Record<string, Class> = { PASS: 'p2p', FAIL: 'f2p', SKIP: 's2p', NONE: 'n2p' };

export function classes({ read, verdict }: Case): Judged {
  const stages = new Map(Object.entries(verdict.stages ?? {}));
  const fix = new Map([...read.outcomes].map(([name, status]) => [name, stageWord(status)]));
  // If the row has lists, the lists give the class of each test. Otherwise the statuses of the row give the class.
  const hasLists = [...stages.values()].some((statuses) => statuses.class !== undefined);
  const listed = [...stages].flatMap(([name, statuses]): [string, Class][] => {
    const own = hasLists ? (statuses.class ?? null) : classOf(statuses.test, statuses.fix);
    return own === null ? [] : [[name, own]];
  });
  const classes = new Map(listed);
  const hasClass = (name: string): boolean =>
    classOf(stages.get(name)?.test ?? 'NONE', fix.get(name) ?? 'NONE') === classes.get(name);
  const names = (passedBefore: boolean): string[] =>
    listed.flatMap(([name, own]) => ((own === 'p2p') === passedBefore ? [name] : []));
  return {
    resolved: isValid(stages, fix) && listed.every(([name]) => hasClass(name)),
    tests: listsOf({ FAIL_TO_PASS: names(false), PASS_TO_PASS: names(true) }, hasClass),
  };
}

/** Returns the word with which the status begins (`PASSED` → `PASS`), or NONE. */
const stageWord = (status: string): string =>
  ['PASS', 'FAIL', 'SKIP'].find((word) => status.startsWith(word)) ?? 'NONE';

const classOf = (test: string, fix: string): Class | null =>
  fix === 'PASS' ? (CLASSES[test] ?? null) : null;

/** Whether a test is fixed and no test is broken. A broken test fails, although the last result before the fix (except skips) is a pass. */
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
