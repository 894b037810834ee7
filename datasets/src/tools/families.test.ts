/** Converts rows of every family. A converted row is the same instance; any other row is refused with a reason. */

import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeAll, expect, test } from 'vitest';
import { FAMILY_ROWS, UNGRADABLE_ROWS, writeProFiles } from '../../test/familyrows.ts';
import { row as swebenchRow } from '../../test/rows.ts';
import { toInstance } from '../row.ts';
import { type Converted, convertRows, type FamilyForm, inForm, unconverted } from './families.ts';
import type { VerbatimFile, VerbatimRow } from './rows.ts';

let familyFiles: string;
beforeAll(async () => {
  familyFiles = temporaryFolder('convert');
  await writeProFiles(familyFiles);
});

const SMITH = swebenchRow({
  ...{ repo: 'swesmith/mewwts__addict.75284f95', base_commit: undefined, version: undefined },
  instance_id: 'mewwts__addict.75284f95.func_basic__12345678',
  image_name: 'jyangballin/swesmith.x86_64.mewwts_1776_addict.75284f95',
  test_patch: undefined,
});
const GYM = swebenchRow({ repo: 'getmoto/moto', instance_id: 'getmoto__moto-1', version: '5.0' });
const OWN = swebenchRow({
  repo: 'a/b',
  image: 'ours/b:1',
  test_cmd: ['make', 'pytest -rA'],
  install: 'make',
});
const WRAPPED = {
  responses_create_params: {
    input: [],
    metadata: { dataset_name: 'SWE-bench/SWE-bench_Verified', instance_dict: JSON.stringify(swebenchRow()) },
  },
};
const LATEST = swebenchRow({
  ...{ image: 'swebench/sweb.eval.x86_64.pallets_1776_flask-1', eval_script: 'true\n' },
  ...{ log_parser: 'parse_log_pytest', eval_type: 'pass_and_fail' },
});

const verbatim = (value: Record<string, unknown>, where = 'line 1'): VerbatimRow => ({
  where,
  value,
  text: () => JSON.stringify(value),
});
const as = (form: FamilyForm, value: Record<string, unknown>): Converted =>
  inForm(verbatim(value), form, { familyFiles });
const refusal = (made: Converted): string | null => ('refused' in made ? made.refused : null);

const ALL = { ...FAMILY_ROWS, swebench: swebenchRow(), SMITH, GYM, OWN, WRAPPED, LATEST };
test.each(Object.entries(ALL))(
  "%s in the farm's own form is the same instance, and stays it",
  (_name, given) => {
    const made = as('swefarm', given);
    if ('refused' in made) throw new Error(made.refused);
    const text = JSON.parse(JSON.stringify(made.value)) as Record<string, unknown>;
    expect(toInstance('line 1', text)).toEqual(toInstance('line 1', given, { familyFiles }));
    expect(as('swefarm', text)).toEqual(made);
  },
);

test.each([
  ['its own row', swebenchRow()],
  ["a row in NeMo Gym's wrapper", WRAPPED],
  [
    "a row in R2E-Gym's form",
    swebenchRow({ docker_image: 'swebench/sweb.eval.x86_64.pallets_1776_flask-1:latest' }),
  ],
  ['a row of 5.x', LATEST],
])("%s has SWE-bench's columns", (_name, given) => {
  const made = as('swebench', given);
  if ('refused' in made) throw new Error(made.refused);
  expect(made.value).toMatchObject({ FAIL_TO_PASS: '["tests/test_a.py::test_a"]', PASS_TO_PASS: '[]' });
  expect(Object.keys(made.value)).not.toEqual(expect.arrayContaining(['family']));
  expect(toInstance('line 1', made.value)).toEqual(toInstance('line 1', given));
});

test.each([
  ...Object.entries({ ...FAMILY_ROWS, SMITH }).map(
    ([name, given]) =>
      [name, given, /^[\w-]+: SWE-bench's columns cannot describe how it is set up and graded$/] as const,
  ),
  ['SWE-Gym', GYM, /^swegym: SWE-bench's harness has no commands for its repositories$/],
  ['a test_cmd', OWN, /takes no test_cmd/],
  [
    'an image of its own',
    swebenchRow({ image: 'ours/flask:5' }),
    /takes no image of a row without eval_script/,
  ],
  ['a network', swebenchRow({ needs_egress: true }), /cannot ask for a network/],
  ...Object.entries(UNGRADABLE_ROWS)
    .filter(([reason]) => !reason.startsWith('the scripts'))
    .map(([reason, given]) => [reason, given, reason] as const),
] as const)("%s has no form in SWE-bench's columns, with a reason", (_name, given, reason) => {
  const found = refusal(as('swebench', given));
  if (typeof reason === 'string') expect(found).toBe(reason);
  else expect(found).toMatch(reason);
});

test('a row whose columns do not show its family is refused', () => {
  const given = swebenchRow({ repo: 'a/b', instance_id: 'a__b-1' });
  const made = inForm(verbatim(given), 'swefarm', { family: 'swegym' });
  expect(refusal(made)).toBe('swegym: its row in that form is another instance (family)');
});

test('refusals are counted by reason with the first place', async () => {
  const given = [swebenchRow(), GYM, SMITH, { ...GYM, instance_id: 'getmoto__moto-2' }];
  const file: VerbatimFile = {
    ...{ path: 'x.jsonl', form: 'jsonl', parquet: null },
    async *rows() {
      for (const [at, value] of given.entries()) yield verbatim(value, `line ${at + 1}`);
    },
  };
  const conversion = await convertRows(file, 'swebench', {});
  const written: unknown[] = [];
  for await (const row of conversion.rows()) written.push(JSON.parse(row.text()));
  expect(written).toMatchObject([{ instance_id: 'pallets__flask-1' }]);
  expect(unconverted('x.jsonl', 'swebench', conversion).message).toBe(
    `x.jsonl: 3 of 4 rows have no form as swebench, nothing was written; --skip-ungradable leaves them out
  2: swegym: SWE-bench's harness has no commands for its repositories (line 2)
  1: swesmith: SWE-bench's columns cannot describe how it is set up and graded (line 3)`,
  );
});
