/**
 * Every test of both lists is among those that passed; other tests do not matter. SWE-bench Pro (ca10a60), SWE-Lego as verifiers
 * (a60a606) reads it, and SWE-rebench V2 as NeMo Gym and verifiers train on it. Skipped or expected to fail is not passed.
 */

import { type Case, type Judged, listsBy } from './judged.ts';
import type { TestsStatus } from './testsstatus.ts';
import { isResolved } from './testsstatus.ts';

export function subset(judged: Case): Judged {
  const tests = passedLists(judged);
  return { resolved: isResolved(tests), tests };
}

/** Both lists, by whether the test passed. */
export function passedLists({ read, instance }: Pick<Case, 'read' | 'instance'>): TestsStatus {
  const named = read.nameOf ?? ((name: string): string => name);
  return listsBy(instance, (test) => read.outcomes.get(named(test)) === 'PASSED');
}
