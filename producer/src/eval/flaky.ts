/** Finds tests and verdicts that differ between several evaluations of the same patch. */
import { readReport, type Stored } from '@swefarm/trajectories';
import type { EvalTask } from './evaltasks.ts';

export type Flaky = {
  instance_id: string;
  /** Number of rounds by verdict; `none`: without a report.json. */
  verdicts: { resolved: number; unresolved: number; none: number };
  /** For each test whose outcome differs: number of rounds in which it passed, failed, or did neither. */
  tests: Record<string, { passed: number; failed: number; neither: number }>;
};

export async function findFlaky(items: readonly EvalTask[]): Promise<Flaky[]> {
  const run = items.filter(({ state }) => state !== 'empty');
  const flaky: (Flaky | null)[] = [];
  for (const [id, rounds] of Map.groupBy(run, ({ prediction }) => prediction.instance_id)) {
    flaky.push(compare(id, await Promise.all(rounds.map(({ folder }) => readReport(folder, id)))));
  }
  return flaky.filter((one) => one !== null);
}

function compare(instanceId: string, rounds: readonly Stored[]): Flaky | null {
  const reports = rounds.flatMap((round) => (round.state === 'report' ? [round.report] : []));
  const resolved = reports.filter((report) => report.resolved).length;
  const verdicts = { resolved, unresolved: reports.length - resolved, none: rounds.length - reports.length };
  const read = reports.flatMap(({ tests }) => (tests ? [outcomes(tests)] : []));
  const names = [...new Set(read.flatMap((one) => [...one.keys()]))].sort();
  const tests: Flaky['tests'] = {};
  for (const name of names) {
    const passed = read.filter((one) => one.get(name) === true).length;
    const failed = read.filter((one) => one.get(name) === false).length;
    if (passed === read.length || failed === read.length) continue;
    tests[name] = { passed, failed, neither: read.length - passed - failed };
  }
  const agreed = Object.values(verdicts).filter((count) => count > 0).length <= 1;
  return agreed && Object.keys(tests).length === 0 ? null : { instance_id: instanceId, verdicts, tests };
}

/** Returns whether each test passed, by test name. */
function outcomes(tests: Record<string, { success: string[]; failure: string[] }>): Map<string, boolean> {
  const of = new Map<string, boolean>();
  for (const { success, failure } of Object.values(tests)) {
    for (const name of success) of.set(name, true);
    for (const name of failure) of.set(name, false);
  }
  return of;
}

const SHOWN = 20;

/** Renders a line for each flaky instance, and lines for the tests below it. */
export function renderFlaky(flaky: readonly Flaky[], times: number): string[] {
  if (flaky.length === 0) return [`no test changed its outcome in ${times} evaluations`];
  return flaky.flatMap(({ instance_id, verdicts, tests }) => {
    const names = Object.entries(tests);
    const counts = Object.entries(verdicts).flatMap(([verdict, count]) =>
      count > 0 ? [`${verdict}×${count}`] : [],
    );
    return [
      `flaky: ${instance_id} (${counts.join(', ')})`,
      ...names.slice(0, SHOWN).map(([name, { passed, failed, neither }]) => {
        const rest = neither > 0 ? `, neither×${neither}` : '';
        return `  ${name}: passed×${passed}, failed×${failed}${rest}`;
      }),
      ...(names.length > SHOWN ? [`  … and ${names.length - SHOWN} more tests`] : []),
    ];
  });
}
