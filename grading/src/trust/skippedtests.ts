/**
 * Finds required tests that did not pass but count as passed: the harness reads XFAIL as a pass and ignores SKIPPED, and the code of a
 * patch can cause both. In some instances, gold has such tests too; `instance.health` lists them.
 */
import type { Instance } from '@swefarm/shared';
import { readDiff } from '../text/diff.ts';
import { forgedIf, type TrustEvidence, type TrustFinding } from './finding.ts';

const SKIPS =
  /\bxfail\b|\bXFailed\b|\bSkipTest\b|\bSkipped\b|\bexpectedFailure\b|\b(?:pytest|unittest)\.skip|\bskipTest\s*\(/;
const SHOWN = 3;

export function skippedTestFindings(evidence: TrustEvidence): TrustFinding[] {
  const { instance, outcomes, resolved } = evidence;
  if (!resolved || !outcomes) return [];
  const given = instance.FAIL_TO_PASS.filter((test) => /^(?:XFAIL|SKIPPED)$/.test(outcomes.get(test) ?? ''));
  const known = unpassedByGold(evidence);
  const unearned = given.filter((test) => !known?.has(test));
  if (unearned.length === 0) return [];
  const some = unearned.slice(0, SHOWN).map((test) => `${test} is ${outcomes.get(test)}`);
  const proven = known !== null || patchSkipsTests(evidence.modelPatch, instance);
  return [forgedIf(proven, `tests that had to pass did not (${some.join(', ')})`)];
}

/** Returns the tests that do not pass with gold; null if gold is not known to resolve with this image and this grader. */
function unpassedByGold({ instance, plan, imageDigest }: TrustEvidence): Set<string> | null {
  const found = instance.health?.find(
    (one) => one.image_digest === imageDigest && one.grader === plan.grader && one.gold_resolves,
  )?.unpassed;
  return found ? new Set(found) : null;
}

/** Whether the patch, unlike gold, adds a line that skips a test or expects a failure. */
function patchSkipsTests(patch: string | null, instance: Instance): boolean {
  const added = (text: string): string[] => readDiff(text).flatMap((file) => file.added);
  try {
    const gold = new Set(added(instance.patch));
    return added(patch ?? '').some((line) => line.length < 2000 && SKIPS.test(line) && !gold.has(line));
  } catch {
    // The parser rejects the patch; the evaluation decides whether the patch applies.
    return false;
  }
}
