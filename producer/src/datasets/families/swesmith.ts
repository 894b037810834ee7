/** SWE-smith: the row's patch makes the bug, and the image holds a branch per instance instead of a commit. */
import type { Instance } from '@swefarm/shared';
import type { FieldReader, Row } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import { reverseDiff } from '../fields/reverse.ts';
import type { Family } from './family.ts';
import { readTests } from './tests.ts';

export const swesmith: Family = {
  name: 'swesmith',
  columns: [],
  fits: (row) =>
    (typeof row.repo === 'string' && row.repo.toLowerCase().startsWith('swesmith/')) ||
    imageOf(row).some((image) => /(^|\/)swesmith\./.test(image)) ||
    (typeof row.instance_id === 'string' && /^[^.]+__.+\.[0-9a-f]{8}\.[^.]+$/.test(row.instance_id)),
  read: readSmith,
};

const imageOf = (row: Row): string[] =>
  [row.image, row.image_name, row.docker_image].filter((image) => typeof image === 'string');

function readSmith(read: FieldReader): Instance {
  const instanceId = read.id();
  const image = read.image();
  if (image === null) {
    read.complain(
      'image_name',
      'the image of its repository',
      read.row.image_name,
      'add the column image_name',
    );
  }
  return {
    instance_id: instanceId,
    repo: read.text('repo', 'add the column repo as owner/name'),
    base_commit: read.optionalText('base_commit') ?? instanceId,
    problem_statement: read.optionalText('problem_statement') ?? '',
    hints_text: read.optionalText('hints_text') ?? '',
    version: '',
    patch: reverseDiff(read.optionalText('patch') ?? ''),
    test_patch: read.optionalText('test_patch') ?? '',
    ...readTests(read),
    family: 'swesmith',
    image: image === null ? '' : withTag(image),
    needs_egress: false,
  };
}
