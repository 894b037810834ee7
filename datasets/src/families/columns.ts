/** Reads the rows of SWE-bench, SWE-Gym and custom datasets. The grader makes their evaluation plans from the columns. */
import { knownRepos, knownVersions } from '@swefarm/grading';
import type { DatasetFamily, Instance } from '@swefarm/shared';
import { type FieldReader, isRow, isTextList, type Row } from '../fields/fields.ts';
import { harnessImage, withTag } from '../fields/image.ts';
import type { Family, RowContext } from './family.ts';
import { withPictures } from './pictures.ts';
import { readTests } from './planned.ts';

/** Lower-case names of the repositories that swebench 4.1.0 can test. */
const SWEBENCH_REPOS = new Set(knownRepos('swebench').map((repo) => repo.toLowerCase()));

const SWEGYM_REPOS = new Set([
  'bokeh/bokeh',
  'conan-io/conan',
  'dask/dask',
  'facebookresearch/hydra',
  'getmoto/moto',
  'hypothesisworks/hypothesis',
  'iterative/dvc',
  'modin-project/modin',
  'pandas-dev/pandas',
  'project-monai/monai',
  'pydantic/pydantic',
  'python/mypy',
]);

const EVALUATION_COLUMNS = [
  'eval_script',
  'test_cmd',
  'install',
  'log_parser',
  'eval_type',
  'needs_egress',
] as const;

export const columns: Family = {
  name: 'custom',
  columns: ['subset', 'environment', 'image_assets', ...EVALUATION_COLUMNS],
  fits: () => true,
  read: readColumns,
};

/** Detects the family of a row. Null: unknown; the row then needs an image column, or the command needs `--family`. */
function detect(row: Row, ownImage: string | null, ownEvaluation: boolean): DatasetFamily | null {
  const repo = typeof row.repo === 'string' ? row.repo.toLowerCase() : '';
  if (row.subset === 'gym')
    return SWEBENCH_REPOS.has(repo) && !SWEGYM_REPOS.has(repo) ? 'swebench' : 'swegym';
  if (SWEGYM_REPOS.has(repo)) return 'swegym';
  if (SWEBENCH_REPOS.has(repo)) return 'swebench';
  return ownImage !== null || ownEvaluation ? 'custom' : null;
}

const IMAGES: Partial<Record<DatasetFamily, (id: string) => string>> = {
  swebench: (id) => harnessImage('swebench', id),
  swegym: (id) => harnessImage('xingyaoww', id, '_s_'),
};

export const isSwegymRepository = ({ repo }: Row): boolean =>
  typeof repo === 'string' && SWEGYM_REPOS.has(repo.toLowerCase());

/** Whether the table of SWE-bench or SWE-Gym has test commands for the repository. */
export const hasKnownRepository = ({ repo }: Row): boolean =>
  typeof repo === 'string' &&
  (SWEBENCH_REPOS.has(repo.toLowerCase()) || SWEGYM_REPOS.has(repo.toLowerCase()));

function readColumns(read: FieldReader, { family: given, pictures: source }: RowContext): Instance {
  const { row } = read;
  const instanceId = read.id();
  const repo = read.repo();
  const evaluation = evaluationColumns(read, row);
  const ownImage = read.image();
  const ownEvaluation = evaluation.eval_script !== undefined || evaluation.test_cmd !== undefined;
  const family = given ?? detect(row, ownImage, ownEvaluation);
  const image = ownImage ?? (family === null ? null : (IMAGES[family]?.(instanceId) ?? null));
  if (image === null && repo !== '') {
    const expected = 'an image column, for no naming rule is known for this repository';
    const remedy = 'add the column image, or pass --family swebench or --family swegym';
    read.complain('image', expected, row.image, remedy);
  }
  const version = read.optionalText('version') ?? '';
  if (family === 'swegym' && !ownEvaluation) requireVersion(read, repo, version);
  const statement = read.optionalText('problem_statement', 'add the text of the issue') ?? '';
  const issue = withPictures(read, statement, source);
  const instance: Instance = {
    instance_id: instanceId,
    repo,
    base_commit: read.text('base_commit', 'add the commit that the instance starts from'),
    problem_statement: issue.text,
    ...(issue.pictures.length > 0 ? { pictures: issue.pictures } : {}),
    version,
    ...read.texts('hints_text', 'patch', 'test_patch'),
    ...readTests(read),
    family: family ?? 'custom',
    image: image === null ? '' : withTag(image),
    needs_egress: false,
    ...evaluation,
  };
  for (const name of ['environment_setup_commit', 'created_at'] as const) {
    const text = read.optionalText(name);
    if (text !== null) instance[name] = text;
  }
  return instance;
}

/** Refuses a row whose version is not in the command table of SWE-Gym's harness. */
function requireVersion(read: FieldReader, repo: string, version: string): void {
  const known = knownVersions('swegym', repo);
  if (known.length === 0 || known.includes(version)) return;
  const reason = "the version is not in the table of SWE-Gym's harness";
  const expected = `a version of ${repo} that the table has: ${known.join(', ')}`;
  const remedy = 'give the row a test_cmd (and log_parser), or leave it out';
  read.refuse(reason, 'version', expected, version, remedy);
}

type EvaluationColumns = Partial<Pick<Instance, (typeof EVALUATION_COLUMNS)[number]>>;

/** Returns the evaluation settings of a row. A column of the row overrides the same key of the column `environment`. */
function evaluationColumns(read: FieldReader, row: Row): EvaluationColumns {
  const inner = isRow(row.environment) ? row.environment : {};
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
