/**
 * Multi-SWE-bench (24f493f): all outcomes are checked together, also of tests outside of the lists. Then each test of the row must have
 * its class again (p2p, f2p, s2p or n2p), which follows from its status with the test patch and with the fix.
 */
import type { Case, Judged } from './judged.ts';
import { listsOf } from './testsstatus.ts';

type Stages = NonNullable<Case['verdict']['stages']>;
type Class = NonNullable<Stages[string]['class']>;

const CLASSES: Record<string, Class> = { PASS: 'p2p', FAIL: 'f2p', SKIP: 's2p', NONE: 'n2p' };

export function classes({ read, verdict }: Case): Judged {
  const stages = new Map(Object.entries(verdict.stages ?? {}));
  const fix = new Map([...read.outcomes].map(([name, status]) => [name, stageWord(status)]));
  // The lists of the row count; only a row without lists is classified by its results.
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
    tests: listsOf(names(false), names(true), hasClass),
  };
}

/** `PASSED` and `PASS` are equal. */
const stageWord = (status: string): string =>
  ['PASS', 'FAIL', 'SKIP'].find((word) => status.startsWith(word)) ?? 'NONE';

const classOf = (test: string, fix: string): Class | null =>
  fix === 'PASS' ? (CLASSES[test] ?? null) : null;

/** There are outcomes; a test that did not pass passes; no test fails that passed with the test patch, or before it without a status. */
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
