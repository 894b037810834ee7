/** Combines the evaluations of the gold patch and of the untouched tree into one finding. */
import type { Instance, Report, Result } from '@swefarm/shared';
import type { HealthFinding } from './registry.ts';

type Tested = Pick<Instance, 'instance_id' | 'FAIL_TO_PASS'>;
export type EvaluationRound = { result: Result; report: Report | null };

/** Returns null when no evaluation of the gold patch has a verdict, or when none of their reports has the image digest. */
export function healthFinding(
  instance: Tested,
  network: 'none' | 'egress',
  gold: readonly EvaluationRound[],
  noop: readonly EvaluationRound[],
  now: Date,
): HealthFinding | null {
  const judged = gold.filter(hasVerdict);
  const digest = judged.map(({ report }) => report.image_digest).find((one) => one !== null);
  const untouched = noop.filter(hasVerdict);
  const [first] = judged;
  if (!first || !digest) return null;
  return {
    format: 'swefarm-health-1',
    instance_id: instance.instance_id,
    image_digest: digest,
    grader: first.report.grader,
    network,
    times: judged.length,
    gold_resolves: judged.every(({ report }) => report.resolved === true),
    noop_resolves: untouched.length === 0 ? null : untouched.some(({ report }) => report.resolved === true),
    gold_seconds: Math.max(...judged.map(({ result }) => result.seconds.tests ?? result.seconds.evaluation)),
    // Evaluations of the untouched tree show flaky tests too.
    flaky: [
      ...new Set([judged, untouched].flatMap((rounds) => flakyTests(rounds.map(({ report }) => report)))),
    ].sort(),
    unpassed: unpassedTests(
      instance,
      judged.map(({ report }) => report),
    ),
    needs_egress: false,
    checked_at: now.toISOString(),
  };
}

/** Tests that cannot start or that time out give a verdict; an evaluation that did not run gives none. */
const hasVerdict = (round: EvaluationRound): round is EvaluationRound & { report: Report } =>
  round.report !== null && round.report.evaluation !== 'not_run' && round.report.resolved !== null;

function flakyTests(reports: readonly Report[]): string[] {
  const seen = new Map<string, Set<boolean>>();
  for (const { tests_status: status } of reports) {
    if (!status) continue;
    for (const { success, failure } of [status.FAIL_TO_PASS, status.PASS_TO_PASS]) {
      for (const name of success) seen.set(name, (seen.get(name) ?? new Set()).add(true));
      for (const name of failure) seen.set(name, (seen.get(name) ?? new Set()).add(false));
    }
  }
  return [...seen].flatMap(([name, passed]) => (passed.size > 1 ? [name] : [])).sort();
}

/** Returns the tests of FAIL_TO_PASS that were skipped or failed as expected in any evaluation, sorted. */
function unpassedTests(instance: Tested, reports: readonly Report[]): string[] {
  const unpassed = (test: string): boolean =>
    reports.some(({ status_map }) => /^(?:XFAIL|SKIPPED)$/.test(status_map?.[test] ?? ''));
  return instance.FAIL_TO_PASS.filter(unpassed).sort();
}

/** Returns the finding without network; `needs_egress` is true if the gold patch is resolved only with network access. */
export function withEgress(without: HealthFinding, withNetwork: HealthFinding | null): HealthFinding {
  return { ...without, needs_egress: !without.gold_resolves && withNetwork?.gold_resolves === true };
}
