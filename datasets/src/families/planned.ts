/** Reads and checks fields that several families share. */
import { createHash } from 'node:crypto';
import { isDialect, parserName } from '@swefarm/grading';
import type { Instance, InstancePlan } from '@swefarm/shared';
import type { FieldReader } from '../fields/fields.ts';
import { isImageName } from '../fields/image.ts';

/** Returns the attempts to apply a patch. Each command gets the path of the patch as its last argument. */
export const attempts = (...commands: string[]): InstancePlan['apply'] =>
  commands.map((command) => ({ name: command, argv: [...command.split(' '), PATCH] }));

/** Default path of the patch in the sandbox. */
export const PATCH = '/tmp/patch.diff';

/** Commands by which swebench 4.1.0 tries to apply a patch. */
export const SWEBENCH_APPLY = attempts(
  'git apply --verbose',
  'git apply --verbose --reject',
  'patch --batch --fuzz=5 -p1 -i',
);

/** Reads the id of a commit, and checks that the id is safe inside a shell command. */
export function commit(read: FieldReader, column: string, value: unknown = read.row[column]): string {
  if (typeof value === 'string' && /^[0-9a-f]{7,64}$/i.test(value)) return value;
  read.complain(column, 'the id of a commit', value, 'add the commit that the instance starts from');
  return '';
}

/** Reads the name of a folder or repository, and checks that the name is safe inside paths and image names. */
export function word(read: FieldReader, column: string, value: unknown = read.row[column]): string {
  if (typeof value === 'string' && /^[A-Za-z0-9._-]+$/.test(value) && !/^\.+$/.test(value)) return value;
  read.complain(column, 'letters, digits, ".", "_" and "-"', value, 'mend this column');
  return '';
}

export const issue = (read: FieldReader): string =>
  read.text('problem_statement', 'add the text of the issue');

/** Reads the fields that most families read alike, and the named columns of optional texts. */
export const basics = <N extends string>(read: FieldReader, ...texts: N[]) => ({
  instance_id: read.id(),
  repo: read.repo(),
  base_commit: commit(read, 'base_commit'),
  problem_statement: issue(read),
  ...read.texts(...texts),
});

/** Refuses a row of a dataset whose images follow no naming rule. */
export const refuseWithoutImage = (read: FieldReader, reason: string): void =>
  read.refuse(reason, 'image', 'an image column', undefined, 'add the column image');

/** Returns an id that the agent may see, for rows whose own id contains the commit of the fix. */
export const shownId = (prefix: string, instanceId: string): string =>
  `${prefix}-${createHash('sha256').update(instanceId).digest('hex').slice(0, 10)}`;

/** Returns the image of the row, or `derived` if the row names none. Records a problem if there is no valid image. */
export function imageOr(read: FieldReader, derived: string | null): string {
  const image = read.image() ?? derived;
  if (image !== null && (image !== derived || isImageName(image))) return image;
  if (!read.complainedOf('image', 'image_name', 'docker_image'))
    read.complain('image', 'an image column', read.row.image, 'add the column image');
  return '';
}

/** Returns the name of a log parser in the registry. Refuses a row whose harness has no parser with the name `given`. */
export function parserOf(read: FieldReader, column: string, given: unknown, dialect: string): string {
  const name = typeof given === 'string' && isDialect(dialect) ? parserName(given, dialect) : null;
  if (name === null) {
    read.refuse('a log parser that its harness has not', column, `the name of a parser of ${dialect}`, given);
  }
  return name ?? '';
}

/** Reads both test lists from the given columns. One list may be empty; a row without any test is refused. */
export function readTests(
  read: FieldReader,
  failToPass = 'FAIL_TO_PASS',
  passToPass = 'PASS_TO_PASS',
): Pick<Instance, 'FAIL_TO_PASS' | 'PASS_TO_PASS'> {
  const tests = { FAIL_TO_PASS: read.tests(failToPass), PASS_TO_PASS: read.tests(passToPass) };
  if (
    tests.FAIL_TO_PASS.length + tests.PASS_TO_PASS.length === 0 &&
    !read.complainedOf(failToPass, passToPass)
  ) {
    read.refuse(
      'no tests',
      failToPass,
      'at least one test id',
      [],
      'leave out the row: without tests every patch would count as resolved',
    );
  }
  return tests;
}
