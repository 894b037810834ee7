/** Lists all dataset families. The first family that recognises a row reads the row. */
import type { DatasetFamily } from '@swefarm/shared';
import { IMAGE_COLUMNS, type Row } from '../fields/fields.ts';
import { carried } from './carried.ts';
import { columns } from './columns.ts';
import type { Family, RowContext } from './family.ts';
import { harbor } from './harbor.ts';
import { multiSwe } from './multiswe.ts';
import { nvInternal, ungradedNemotron } from './nemotron.ts';
import { openSwe } from './openswe.ts';
import { r2eGym } from './r2egym.ts';
import { scaleSwe } from './scaleswe.ts';
import { sweBenchLive } from './swebenchlive.ts';
import { sweBenchPro } from './swebenchpro.ts';
import { swegymRaw } from './swegymraw.ts';
import { sweLego } from './swelego.ts';
import { sweRebench } from './swerebench.ts';
import { sweRebenchV2 } from './swerebenchv2.ts';
import { swesmith } from './swesmith.ts';

/** The last family accepts every row. */
export const FAMILIES: readonly Family[] = [
  harbor,
  carried,
  ungradedNemotron,
  r2eGym,
  nvInternal,
  sweBenchPro,
  multiSwe,
  swesmith,
  sweRebenchV2,
  sweLego,
  sweRebench,
  sweBenchLive,
  scaleSwe,
  openSwe,
  swegymRaw,
  columns,
];

const SHARED_COLUMNS = [
  'instance_id',
  'repo',
  'base_commit',
  'problem_statement',
  'patch',
  'test_patch',
  'FAIL_TO_PASS',
  'PASS_TO_PASS',
  'hints_text',
  'version',
  'created_at',
  'environment_setup_commit',
  'prompts',
  'toolset',
  ...IMAGE_COLUMNS,
  'responses_create_params',
];

/** Names of the licence column. Instances do not contain the licence. */
export const LICENCE_COLUMNS: readonly string[] = ['license', 'license_name'];

/** Names of all columns that this package reads. */
export const COLUMNS: readonly string[] = [
  ...new Set([...SHARED_COLUMNS, ...LICENCE_COLUMNS, ...FAMILIES.flatMap((family) => family.columns)]),
];

/** Every row has one of these columns, which contain an id or belong to the wrapper of NeMo Gym. */
export const ID_COLUMNS: readonly string[] = [
  'instance_id',
  'docker_image',
  'number',
  'responses_create_params',
];

/** Families that `columns.ts` reads. */
const BY_COLUMNS: readonly DatasetFamily[] = ['swebench', 'swegym', 'custom'];

/** Returns the family that `context` names, or the first family that recognises the row. */
export function familyOf(row: Row, context: RowContext): Family {
  const { family } = context;
  if (family !== undefined && BY_COLUMNS.includes(family)) return columns;
  const named = FAMILIES.filter((one) => one.name === family);
  return (
    named.find((one) => one.fits(row, context)) ??
    named[0] ??
    FAMILIES.find((one) => one.fits(row, context)) ??
    columns
  );
}
