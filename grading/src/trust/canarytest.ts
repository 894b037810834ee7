/**
 * Adds a test that must fail to the tests of a second evaluation. Where the code of the patch decides outcomes itself, or prints
 * invented ones, that failure does not appear. An evaluation of gold shows whether the failure can be seen at all.
 */
import type { Instance, InstancePlan, Report } from '@swefarm/shared';
import { readsPytest } from '../parsers/pytest.ts';
import { HEREDOC } from '../plan/evalscript.ts';
import { START_MARKER } from '../plan/markers.ts';
import { parserOf } from '../plan/plan.ts';

export type CanaryTest = {
  plan: InstancePlan;
  /** The report shows the failure of the added test. */
  fails: (report: Pick<Report, 'status_map'>) => boolean;
};

/** `name`: of the test, which must not be guessable. Null where pytest does not run the tests, or the script has no place for another one. */
export function addCanaryTest(plan: InstancePlan, instance: Instance, name: string): CanaryTest | null {
  const file = [...instance.FAIL_TO_PASS, ...instance.PASS_TO_PASS]
    .map((id) => id.split('::', 1)[0] ?? '')
    .find((path) => /^[\w./-]+\.py$/.test(path));
  const lines = plan.script.split('\n');
  const marker = lines.findIndex((line) => line.includes(START_MARKER));
  const at = marker < 0 ? lines.indexOf(HEREDOC) + 1 : marker;
  if (!readsPytest(parserOf(plan)) || file === undefined || at <= 0) return null;
  // Scripts that are made by columns name it /testbed, wherever it is.
  const folder = instance.environment?.workdir ?? '/testbed';
  const line = `printf '\\n\\ndef ${name}():\\n    raise AssertionError\\n' >>${folder}/${file}`;
  const script = [...lines.slice(0, at), line, ...lines.slice(at)].join('\n');
  const fails: CanaryTest['fails'] = ({ status_map }) =>
    Object.entries(status_map ?? {}).some(
      ([id, status]) => id.endsWith(`::${name}`) && /^FAILED|^ERROR/.test(status),
    );
  return { plan: { ...plan, script }, fails };
}
