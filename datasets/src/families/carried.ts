/** Reads rows in the format that this farm exports: an instance with its environment and plan. */
import { DatasetFamily } from '@swefarm/shared';
import { asObject, type FieldReader } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import type { Family, InstanceDraft } from './family.ts';
import { imageOr } from './planned.ts';

export const carried: Family = {
  name: 'custom',
  columns: ['plan', 'environment', 'needs', 'family', 'shown_id'],
  fits: ({ plan }) => typeof asObject(plan)?.grader === 'string',
  read: readCarried,
};

/** Does not check `environment` and `plan`: the schema of `Instance` checks both in `row.ts`. */
function readCarried(read: FieldReader): InstanceDraft {
  const { row } = read;
  const family = DatasetFamily.safeParse(row.family ?? 'custom');
  if (!family.success)
    read.complain('family', DatasetFamily.options.join(', '), row.family, 'write the row anew');
  const shownId = read.optionalText('shown_id');
  return {
    instance_id: read.id(),
    repo: read.repo(),
    base_commit: read.text('base_commit', 'add the commit that the instance starts from'),
    ...read.texts('problem_statement', 'hints_text', 'version', 'patch', 'test_patch'),
    FAIL_TO_PASS: read.tests('FAIL_TO_PASS'),
    PASS_TO_PASS: read.tests('PASS_TO_PASS'),
    family: family.data ?? 'custom',
    image: withTag(imageOr(read, null)),
    needs_egress: row.needs_egress === true,
    environment: (asObject(row.environment) ?? {}) as NonNullable<InstanceDraft['environment']>,
    plan: asObject(row.plan) as NonNullable<InstanceDraft['plan']>,
    ...(shownId === null ? {} : { shown_id: shownId }),
  };
}
