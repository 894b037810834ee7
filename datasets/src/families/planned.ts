/** What the readers that write a plan share. */
import { createHash } from 'node:crypto';
import type { InstancePlan } from '@swefarm/shared';
import type { FieldReader } from '../fields/fields.ts';
import { isImageName } from '../fields/image.ts';

/** Ways to apply the patch, by the command before its path. */
export const attempts = (...commands: string[]): InstancePlan['apply'] =>
  commands.map((command) => ({ name: command, argv: [...command.split(' '), PATCH] }));

/** Where a plan's commands find the patch, unless the family has a place of its own. */
export const PATCH = '/tmp/patch.diff';

/** swebench 4.1.0's ways, which several families took over. */
export const SWEBENCH_APPLY = attempts(
  'git apply --verbose',
  'git apply --verbose --reject',
  'patch --batch --fuzz=5 -p1 -i',
);

/** A commit that goes into a command. */
export function commit(read: FieldReader, column: string, value: unknown = read.row[column]): string {
  if (typeof value === 'string' && /^[0-9a-f]{7,64}$/i.test(value)) return value;
  read.complain(column, 'the id of a commit', value, 'add the commit that the instance starts from');
  return '';
}

/** The name of a folder or repository that goes into paths and image names. */
export function word(read: FieldReader, column: string, value: unknown = read.row[column]): string {
  if (typeof value === 'string' && /^[A-Za-z0-9._-]+$/.test(value) && !/^\.+$/.test(value)) return value;
  read.complain(column, 'letters, digits, ".", "_" and "-"', value, 'mend this column');
  return '';
}

/** The text of the issue. */
export const issue = (read: FieldReader): string =>
  read.text('problem_statement', 'add the text of the issue');

/** An id that tells the agent nothing, for rows whose own holds the commit that solves them. */
export const shownId = (prefix: string, instanceId: string): string =>
  `${prefix}-${createHash('sha256').update(instanceId).digest('hex').slice(0, 10)}`;

/** `derived` where the row names no image and a rule does. */
export function imageOr(read: FieldReader, derived: string | null): string {
  const image = read.image() ?? derived;
  if (image !== null && (image === derived ? isImageName(image) : true)) return image;
  if (!read.complainedOf('image', 'image_name', 'docker_image'))
    read.complain('image', 'an image column', read.row.image, 'add the column image');
  return '';
}
