/**
 * Makes counted tests (of FAIL_TO_PASS and PASS_TO_PASS) fail in a second evaluation. If the code of the patch decides outcomes or prints
 * invented outcomes, the failures do not appear. The names of the tests do not change, so the code cannot recognise the changed tests. A
 * gold evaluation with the same tests shows whether the failures are visible.
 */
import type { Instance, InstancePlan, Report } from '@swefarm/shared';
import { readsPytest } from '../parsers/pytest.ts';
import { HEREDOC } from '../plan/evalscript.ts';
import { START_MARKER } from '../plan/markers.ts';
import { parserOf } from '../plan/plan.ts';
import { type Change, failTests } from './mutatedpatch.ts';
import type { Random } from './mutations.ts';

export type FailingTests = {
  plan: InstancePlan;
  /** Tests of FAIL_TO_PASS and PASS_TO_PASS that must fail. */
  ids: string[];
};

/** Maximum number of tests that are redefined at the end of their files. */
const MOST_REDEFINED = 5;

/** Returns null if no test of FAIL_TO_PASS or PASS_TO_PASS can be made to fail. */
export function makeTestsFail(
  plan: InstancePlan,
  instance: Instance,
  random: Random,
  change: Change = 'opposites',
): FailingTests | null {
  const mutated = failTests(instance, random, change);
  const gains = new Set(instance.FAIL_TO_PASS);
  const changed = mutated && withTestPatch(plan, instance.test_patch, mutated.patch);
  const best = changed && mutated ? { plan: changed, ids: mutated.ids } : null;
  if (change === 'values' || best?.ids.some((id) => gains.has(id))) return best;
  return redefineTests(plan, instance, random) ?? best;
}

/** Returns the plan with another test patch; null if the plan does not contain the test patch of the row. */
function withTestPatch(plan: InstancePlan, given: string, other: string): InstancePlan | null {
  const [from, to] = [given.trimEnd(), other.trimEnd()];
  const all = [plan.script, ...[...plan.before, ...plan.after].map(({ script }) => script)];
  if (from === '' || !all.some((text) => text.includes(from))) return null;
  const put = (text: string): string => text.split(from).join(to);
  const steps = (list: InstancePlan['before']) => list.map((step) => ({ ...step, script: put(step.script) }));
  return { ...plan, script: put(plan.script), before: steps(plan.before), after: steps(plan.after) };
}

/** Redefines tests at the end of their files, because Python uses the last definition of a name. */
function redefineTests(plan: InstancePlan, instance: Instance, random: Random): FailingTests | null {
  const parser = parserOf(plan);
  if (!readsPytest(parser) && parser !== 'django') return null;
  const lines = plan.script.split('\n');
  const marker = lines.findIndex((line) => line.includes(START_MARKER));
  const at = marker < 0 ? lines.indexOf(HEREDOC) + 1 : marker;
  if (at <= 0) return null;
  const tests = [...instance.FAIL_TO_PASS, ...instance.PASS_TO_PASS];
  const known = tests.map(locationOf).filter((location) => location !== null);
  const chosen = [
    ...new Map(known.map((location) => [`${location.file}:${location.name}`, location])).values(),
  ].slice(0, MOST_REDEFINED);
  if (chosen.length === 0) return null;
  // Scripts that are made from the columns of a row use /testbed.
  const folder = instance.environment?.workdir ?? '/testbed';
  const added = chosen.map((location) => {
    const file = `${folder}/${location.file}`;
    return `[ ! -f ${file} ] || printf '%b' '${definition(location, random)}' >>${file}`;
  });
  const names = new Set(chosen.map(({ file, name }) => `${file}:${name}`));
  const ids = tests.filter((id) => {
    const location = locationOf(id);
    return location !== null && names.has(`${location.file}:${location.name}`);
  });
  return { plan: { ...plan, script: [...lines.slice(0, at), ...added, ...lines.slice(at)].join('\n') }, ids };
}

/** The `name` of a test in a class is `Class.test`. */
type TestLocation = { file: string; name: string };

/** Returns the file and the name of a test; null if the id names no file of the repository. */
function locationOf(id: string): TestLocation | null {
  const [, file, names] = /^([\w./-]+\.py)::((?:\w+::)*\w+)(?:\[|$)/.exec(id) ?? [];
  if (file !== undefined && names !== undefined) return { file, name: names.replaceAll('::', '.') };
  const [, test, module, group] = /^(\w+) \(([\w.]+)\.(\w+)(?:\.\1)?\)$/.exec(id) ?? [];
  if (test === undefined || module === undefined) return null;
  return { file: `tests/${module.replaceAll('.', '/')}.py`, name: `${group}.${test}` };
}

/** Returns the definition of a failing test, for printf's `%b`. */
function definition({ name }: TestLocation, random: Random): string {
  const one = random(900) + 10;
  const test = name.split('.').at(-1) ?? name;
  const head = `\\n\\ndef ${test}(*args, **kwargs):\\n    assert ${one} == ${one + 1}\\n`;
  return name === test ? head : `${head}\\n\\n${name} = ${test}\\ndel ${test}\\n`;
}

type Seen = Pick<Report, 'evaluation' | 'resolved' | 'tests_status' | 'unreadable'>;

const passedIn = ({ tests_status }: Seen): Set<string> =>
  new Set([...(tests_status?.FAIL_TO_PASS.success ?? []), ...(tests_status?.PASS_TO_PASS.success ?? [])]);

export const hasOutcomes = ({ evaluation, unreadable }: Pick<Report, 'evaluation' | 'unreadable'>): boolean =>
  evaluation === 'completed' && unreadable === undefined;

/** Whether none of the tests `ids` passed. If the report has no lists of tests, the verdict decides. */
export function showsFailures(seen: Seen, ids: readonly string[]): boolean {
  if (!hasOutcomes(seen)) return false;
  if (seen.tests_status === null) return seen.resolved === false;
  const passed = passedIn(seen);
  return ids.every((id) => !passed.has(id));
}

/** Whether failures that appear in the evaluation of gold do not all appear in the evaluation of the patch. */
export function hidesFailures(seen: Seen, gold: Seen, ids: readonly string[]): boolean {
  if (!hasOutcomes(gold)) return false;
  const failed = ids.filter((id) => !passedIn(gold).has(id));
  return showsFailures(gold, failed) && failed.length > 0 && !showsFailures(seen, failed);
}
