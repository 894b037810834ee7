/** Converts a dataset row to an Instance: the only place that knows the columns of SWE-bench, SWE-Gym, SWE-smith and custom rows. */
import type { DatasetFamily, Instance } from '@swefarm/shared';
import { detectFamily, familyImage, isImagePath, withTag } from './family.ts';
import { describeValue, type RowProblem } from './problem.ts';
import { reverseDiff } from './reverse.ts';

const TEXT_COLUMNS = [
  'hints_text',
  'version',
  'test_patch',
  'created_at',
  'environment_setup_commit',
] as const;
const IMAGE_COLUMNS = ['image', 'image_name', 'docker_image'] as const;
const EVALUATION_COLUMNS = [
  'eval_script',
  'test_cmd',
  'install',
  'log_parser',
  'eval_type',
  'needs_egress',
] as const;

/** Every column that is read; other columns may have any size. */
export const COLUMNS: readonly string[] = [
  'instance_id',
  'repo',
  'base_commit',
  'problem_statement',
  'patch',
  'FAIL_TO_PASS',
  'PASS_TO_PASS',
  'subset',
  'environment',
  ...TEXT_COLUMNS,
  ...IMAGE_COLUMNS,
  ...EVALUATION_COLUMNS,
];

export type RowOptions = {
  /** Overrides the family detected from the row. */
  family?: DatasetFamily | undefined;
};

type Row = Record<string, unknown>;

/** The instance of a row, or all problems of the row. */
export function toInstance(
  where: string,
  row: Row,
  options: RowOptions = {},
): { instance: Instance } | { problems: RowProblem[] } {
  const read = new FieldReader(where, row);
  const instanceId = read.text('instance_id', 'give every row the id of its instance');
  if (instanceId !== '' && !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(instanceId)) {
    read.complain('instance_id', 'letters, digits, ".", "_" and "-"', row.instance_id, 'rename the instance');
  }
  const repo = read.text('repo', 'add the column repo as owner/name');
  const evaluation = evaluationColumns(read, row);
  const ownImage = read.image();
  const ownEvaluation = evaluation.eval_script !== undefined || evaluation.test_cmd !== undefined;
  const family =
    options.family ?? detectFamily({ repo, image: ownImage, subset: row.subset, ownEvaluation }) ?? null;
  const smith = family === 'swesmith';
  const image = ownImage ?? (family === null ? null : familyImage(family, instanceId));
  if (image === null && repo !== '') {
    read.complain(
      'image',
      'an image column, for no naming rule is known for this repository',
      row.image,
      'add the column image, or pass --family swebench or --family swegym',
    );
  }
  const tests = readTests(read);
  const patch = read.optionalText('patch') ?? '';
  const instance: Instance = {
    instance_id: instanceId,
    repo,
    // SWE-smith's images hold a branch per instance, named after it, instead of a commit in the row.
    base_commit: smith
      ? (read.optionalText('base_commit') ?? instanceId)
      : read.text('base_commit', 'add the commit that the instance starts from'),
    problem_statement:
      read.optionalText('problem_statement', smith ? undefined : 'add the text of the issue') ?? '',
    hints_text: read.optionalText('hints_text') ?? '',
    version: read.optionalText('version') ?? '',
    // SWE-smith's patch makes the bug; the gold patch reverts it.
    patch: smith ? reverseDiff(patch) : patch,
    test_patch: read.optionalText('test_patch') ?? '',
    ...tests,
    family: family ?? 'custom',
    image: image === null ? '' : withTag(image),
    needs_egress: false,
    ...evaluation,
  };
  for (const name of ['environment_setup_commit', 'created_at'] as const) {
    const text = read.optionalText(name);
    if (text !== null) instance[name] = text;
  }
  return read.problems.length > 0 ? { problems: read.problems } : { instance };
}

function readTests(read: FieldReader): Pick<Instance, 'FAIL_TO_PASS' | 'PASS_TO_PASS'> {
  const tests = {
    FAIL_TO_PASS: read.tests('FAIL_TO_PASS'),
    PASS_TO_PASS: read.tests('PASS_TO_PASS'),
  };
  if (
    tests.FAIL_TO_PASS.length + tests.PASS_TO_PASS.length === 0 &&
    !read.complainedOf('FAIL_TO_PASS', 'PASS_TO_PASS')
  ) {
    read.complain(
      'FAIL_TO_PASS',
      'at least one test id',
      [],
      'without tests every patch would count as resolved',
    );
  }
  return tests;
}

type EvaluationColumns = Partial<Pick<Instance, (typeof EVALUATION_COLUMNS)[number]>>;

/** A row's own evaluation settings, at its top level or under `environment`; the top level wins. */
function evaluationColumns(read: FieldReader, row: Row): EvaluationColumns {
  const nested = row.environment;
  const inner =
    nested !== null && typeof nested === 'object' && !Array.isArray(nested) ? (nested as Row) : {};
  const found: EvaluationColumns = {};
  const value = (name: string): unknown => row[name] ?? inner[name] ?? null;
  for (const name of ['eval_script', 'install', 'log_parser'] as const) {
    const text = value(name);
    if (text === null || text === '') continue;
    if (typeof text === 'string') found[name] = text;
    else read.complain(name, 'a string', text, 'write it as one string');
  }
  const command = value('test_cmd');
  if (typeof command === 'string' || isTextList(command)) {
    if (command.length > 0) found.test_cmd = command;
  } else if (command !== null) {
    read.complain('test_cmd', 'a string or a list of strings', command, 'write the command as text');
  }
  const type = value('eval_type');
  if (type !== null) {
    const lower = String(type).toLowerCase();
    if (lower === 'pass_and_fail' || lower === 'fail_only') found.eval_type = lower;
    else
      read.complain('eval_type', 'pass_and_fail or fail_only', type, 'use one of the two, or leave it out');
  }
  const egress = value('needs_egress');
  if (typeof egress === 'boolean') found.needs_egress = egress;
  else if (egress !== null)
    read.complain('needs_egress', 'true or false', egress, 'leave it out when unsure');
  return found;
}

/** Reads the fields of one row and collects their problems. */
class FieldReader {
  readonly problems: RowProblem[] = [];
  readonly #where: string;
  readonly #row: Row;

  constructor(where: string, row: Row) {
    this.#where = where;
    this.#row = row;
  }

  complain(field: string, expected: string, value: unknown, remedy: string): void {
    this.problems.push({ where: this.#where, field, expected, found: describeValue(value), remedy });
  }

  complainedOf(...fields: string[]): boolean {
    return this.problems.some((problem) => problem.field !== null && fields.includes(problem.field));
  }

  /** A column that must hold text. */
  text(name: string, remedy: string): string {
    const value = this.#row[name];
    if (typeof value === 'string' && value !== '') return value;
    this.complain(name, 'a string', value, remedy);
    return '';
  }

  /** A column that may be absent or null, unless `remedy` is given. */
  optionalText(name: string, remedy?: string): string | null {
    const value = this.#row[name] ?? null;
    if (typeof value === 'string') return value;
    if (value !== null) this.complain(name, 'a string', value, 'write the column as text');
    else if (remedy !== undefined) this.complain(name, 'a string', undefined, remedy);
    return null;
  }

  /** Test ids, as a list or as the JSON text of one. */
  tests(name: string): string[] {
    const value = this.#row[name];
    if (isTextList(value)) return value;
    const parsed = typeof value === 'string' ? parseList(value) : null;
    if (parsed) return parsed;
    const expected = 'a list of test ids, or the JSON text of one';
    this.complain(name, expected, value, 'export the column as a list of strings');
    return [];
  }

  /** The first image column that is filled in. */
  image(): string | null {
    for (const name of IMAGE_COLUMNS) {
      const value = this.#row[name] ?? '';
      if (value === '') continue;
      const named = typeof value === 'string' && /^[a-z0-9][A-Za-z0-9._:@/-]*$/.test(value);
      if (typeof value === 'string' && (named || isImagePath(value))) return value;
      this.complain(name, 'the name of a container image', value, 'write it as registry/name:tag');
      return null;
    }
    return null;
  }
}

const isTextList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

function parseList(text: string): string[] | null {
  try {
    const value: unknown = JSON.parse(text);
    return isTextList(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
