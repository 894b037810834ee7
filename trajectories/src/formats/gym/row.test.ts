import { toInstance } from '@swefarm/datasets';
import { FAMILY_ROWS, UNGRADABLE_ROWS } from '@swefarm/datasets/test/familyrows.ts';
import type { Instance } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { inputRow } from './inputs.ts';
import { GymRow, instanceOf } from './row.ts';

const graded = Object.entries(FAMILY_ROWS).filter(([name]) => name !== 'swe-bench-pro');
const PARAMS = { responses_create_params: { input: [] } };

function read(row: Record<string, unknown>): Instance {
  const found = instanceOf(GymRow.parse({ ...PARAMS, ...row }));
  if (!('instance' in found)) throw new Error(JSON.stringify(found));
  return found.instance;
}

test.each(graded)('a posted row of %s is read as the same row of a file', (_name, row) => {
  const file = toInstance('line 1', row);
  expect(read(row)).toEqual('instance' in file && file.instance);
});

test.each(graded)("a row of %s in NeMo's wrapper is read as the wrapped row", (name, row) => {
  // These rows are already wrapped.
  if (name.startsWith('nemotron') || 'responses_create_params' in row) return;
  const metadata = { dataset_name: 'anything', instance_dict: JSON.stringify(row) };
  const found = read({ responses_create_params: { input: [], metadata } });
  const bare = read(row);
  // In the wrapper, rows of SWE-rebench V2 have another plan, with the verdict rule `subset`.
  const plan = bare.plan && name === 'swe-rebench-v2' ? { ...found.plan } : bare.plan;
  expect(found).toEqual({ ...bare, plan });
});

test.each(graded)('a row of %s that the farm wrote for Gym keeps environment and plan', (_name, row) => {
  const instance = read(row);
  const written = inputRow(instance, { policy: null }, 0, 0);
  expect(read(JSON.parse(JSON.stringify(written)))).toEqual(instance);
});

test.each(Object.entries(UNGRADABLE_ROWS))('a posted row is refused by name: %s', (reason, row) => {
  const found = instanceOf(GymRow.parse({ ...PARAMS, ...row, instance_id: row.instance_id ?? undefined }));
  if ('id' in found || 'instance' in found) throw new Error(JSON.stringify(found));
  expect(found.problems.map(({ ungradable }) => ungradable)).toEqual([reason]);
});

test('an id alone names an instance of the dataset of serve; broken wrapper JSON is named', () => {
  expect(instanceOf(GymRow.parse({ ...PARAMS, instance_id: 'a__b-1' }))).toEqual({ id: 'a__b-1' });
  const metadata = { instance_id: 'a__b-1', instance_dict: '{"repo": ' };
  const found = instanceOf(GymRow.parse({ responses_create_params: { metadata } }));
  expect('problems' in found && found.problems[0]?.field).toBe(
    'responses_create_params.metadata.instance_dict',
  );
});
