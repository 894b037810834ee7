/** OpenSWE: the row carries the whole evaluation as a script, which prints its exit code. */
import type { FieldReader } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import type { Family, InstanceDraft } from './family.ts';
import { imageOr, issue, planned, SWEBENCH_APPLY } from './planned.ts';

export const openSwe: Family = {
  name: 'open-swe',
  columns: ['eval_script'],
  fits: ({ eval_script }) => typeof eval_script === 'string' && eval_script.includes('OPENSWE_EXIT_CODE='),
  read: readOpen,
};

function readOpen(read: FieldReader): InstanceDraft {
  return planned({
    instance_id: read.id(),
    repo: read.text('repo', 'add the column repo as owner/name'),
    base_commit: read.optionalText('base_commit') || 'HEAD',
    problem_statement: issue(read),
    patch: read.optionalText('patch') ?? '',
    test_patch: read.optionalText('test_patch') ?? '',
    FAIL_TO_PASS: [],
    PASS_TO_PASS: [],
    family: 'open-swe',
    image: withTag(imageOr(read, null)),
    environment: {},
    plan: {
      grader: 'open-swe',
      apply: SWEBENCH_APPLY,
      script: read.text('eval_script', 'export the whole row'),
      outcomes: { from: 'exit_code', pattern: 'OPENSWE_EXIT_CODE=(\\d+)' },
      verdict: { rule: 'exit_code' },
    },
  });
}
