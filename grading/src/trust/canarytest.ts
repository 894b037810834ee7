/**
 * A test made to fail, set among those that count for a second evaluation: where code of the patch decides outcomes itself,
 * or prints made-up ones, it is not seen to fail. Gold tells whether it can be seen at all.
 */
import type { Instance, Report } from '@swefarm/shared';
import { readsPytest } from '../parsers/pytest.ts';
import { HEREDOC } from '../plan/evalscript.ts';
import type { EvaluationPlan } from '../plan/evaluationplan.ts';
import { START_MARKER } from '../plan/markers.ts';

export type CanaryTest = {
  plan: EvaluationPlan;
  /** The trap was seen to fail, as it must. */
  fails: (report: Pick<Report, 'status_map'>) => boolean;
};

/** `name`: of the test, one that nobody can guess. Null where tests are not pytest's, or the script has no place for it. */
export function addCanaryTest(plan: EvaluationPlan, instance: Instance, name: string): CanaryTest | null {
  const file = [...instance.FAIL_TO_PASS, ...instance.PASS_TO_PASS]
    .map((id) => id.split('::', 1)[0] ?? '')
    .find((path) => /^[\w./-]+\.py$/.test(path));
  const lines = plan.evalScript.split('\n');
  const marker = lines.findIndex((line) => line.includes(START_MARKER));
  const at = marker < 0 ? lines.indexOf(HEREDOC) + 1 : marker;
  if (!readsPytest(plan.parser) || file === undefined || at <= 0) return null;
  const line = `printf '\\n\\ndef ${name}():\\n    raise AssertionError\\n' >>/testbed/${file}`;
  const evalScript = [...lines.slice(0, at), line, ...lines.slice(at)].join('\n');
  const fails: CanaryTest['fails'] = ({ status_map }) =>
    Object.entries(status_map ?? {}).some(
      ([id, status]) => id.endsWith(`::${name}`) && /^FAILED|^ERROR/.test(status),
    );
  return { plan: { ...plan, evalScript }, fails };
}
