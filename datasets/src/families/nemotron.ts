/** Reads rows of NeMo Gym's own servers. One kind is graded like SWE-bench Pro; the other kinds are refused with a reason. */
import { asObject, type FieldReader, type Row } from '../fields/fields.ts';
import { type Family, type InstanceDraft, NOTHING, type RowContext } from './family.ts';
import { refuseWithoutImage } from './planned.ts';
import { readPro } from './swebenchpro.ts';

/** Family of `nv-internal-1` rows, which have the format of SWE-bench Pro and contain their scripts. */
export const nvInternal: Family = {
  name: 'nemotron',
  columns: ['fail_to_pass_select', 'pass_to_pass_select'],
  fits: (row, { wrappedDataset }) =>
    typeof row['run_script.sh'] === 'string' &&
    typeof row['parsing_script.py'] === 'string' &&
    (/nv-internal/i.test(wrappedDataset ?? '') || !String(row.instance_id).startsWith('instance_')),
  read: readInternal,
};

/** Columns of the test lists. The first column that is not null is read, even if its list is empty. */
const SELECTED = {
  fail_to_pass: ['fail_to_pass_select', 'fail_to_pass', 'FAIL_TO_PASS'],
  pass_to_pass: ['pass_to_pass_select', 'pass_to_pass', 'PASS_TO_PASS'],
};

const APPLY = 'git apply --ignore-space-change --ignore-whitespace --reject -v';

/** Reads a row like SWE-bench Pro, with another apply command, timeout and test columns (`NVInternalDatasetProcessor` of NeMo Gym). */
function readInternal(read: FieldReader, context: RowContext): InstanceDraft {
  const made = readPro(read, context, SELECTED);
  if (read.image() === null && !read.optionalText('dockerhub_tag'))
    refuseWithoutImage(read, 'nv-internal-1 rows name no image');
  if (!made.plan) return made;
  const apply = [{ name: APPLY, argv: [...APPLY.split(' '), '/tmp/patch.diff'] }];
  return {
    ...made,
    family: 'nemotron',
    plan: { ...made.plan, grader: 'nemo-nv-internal-1', apply, timeout: 1800 },
  };
}

type Refused = {
  reason: string;
  field: string;
  remedy?: string;
  fits(row: Row, context: RowContext): boolean;
};

const UNKNOWN: readonly Refused[] = [
  {
    reason: 'SWE-Pivot rows are single steps without a repository: nothing can be run',
    field: 'expected_action',
    fits: (row) => row.expected_action !== undefined,
  },
  {
    reason: 'deepswe rows have their verifier on a server of NVIDIA',
    field: 'verifier_metadata',
    fits: (row) => row.verifier_metadata !== undefined && row.image !== undefined,
  },
  {
    reason: 'swerl_gen rows ask for one answer of text, and their images are files of NVIDIA',
    field: 'relevant_file_contents',
    fits: (row) => row.relevant_file_contents !== undefined || isGenerated(row.metadata),
  },
  {
    reason: 'swe-bench-ext rows are read by parsers that are not established here',
    field: 'test_framework',
    remedy: 'leave out these rows, or give them an eval_script and a log_parser of your own, and an image',
    // A row with its own eval_script and log_parser does not need the parsers of swe-bench-ext.
    fits: (row, { wrappedDataset }) =>
      !['eval_script', 'log_parser'].every((name) => isText(row[name])) &&
      ((row.test_framework !== undefined && row.test_command !== undefined) ||
        /swe-bench-ext/i.test(wrappedDataset ?? '')),
  },
];

const isText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== '';

const isGenerated = (metadata: unknown): boolean =>
  ['eval', 'repro-gen'].includes(String(asObject(metadata)?.mode));

/** Refuses the kinds of rows in `UNKNOWN`, which cannot be graded. */
export const ungradedNemotron: Family = {
  name: 'nemotron',
  columns: [
    ...['expected_action', 'verifier_metadata', 'relevant_file_contents', 'test_framework', 'test_command'],
    ...['metadata', 'task_id', 'uuid'],
  ],
  fits: (row, context) => UNKNOWN.some((kind) => kind.fits(row, context)),
  names: (row) => ({ id: row.instance_id ?? row.task_id ?? row.uuid, repo: row.repo }),
  read(read, context) {
    const kind = UNKNOWN.find((one) => one.fits(read.row, context));
    if (!kind) return NOTHING;
    const { reason, field, remedy = 'leave out these rows' } = kind;
    read.refuse(reason, field, 'a row of a family that can be graded', read.row[field], remedy);
    return NOTHING;
  },
};
