import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Instance, Instance as InstanceSchema } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { parquetReadObjects } from 'hyparquet';
import { expect, test } from 'vitest';
import { verlParquet, writeVerlDataset } from './dataset.ts';
import { PROMPT_STYLES, promptOf } from './prompts.ts';
import { agentNameOf, splitOf, stableIndex, verlRow } from './rows.ts';

const instance = (id: string): Instance =>
  InstanceSchema.parse({
    instance_id: id,
    repo: 'a/b',
    base_commit: 'c0ffee',
    problem_statement: `It breaks: ${id} ü`,
    patch: 'THE GOLD',
    FAIL_TO_PASS: ['t::one', 't::two'],
    PASS_TO_PASS: [],
    family: 'custom',
    image: 'x:1',
  });

const row = (id: string, gold = false) =>
  verlRow(instance(id), 'train', { style: 'tools', gold, agentName: agentNameOf('tools') });

test.each([2, 0])('%i rows are unchanged when they are read from the file', async (count) => {
  const rows = ['a__b-1', 'a__b-2'].slice(0, count).map((id) => row(id));
  const file = verlParquet(rows);
  const bytes = file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength) as ArrayBuffer;
  const read = await parquetReadObjects({ file: bytes });
  const plain = JSON.parse(JSON.stringify(read, (_, v) => (typeof v === 'bigint' ? Number(v) : v)));
  expect(plain).toEqual(rows);
});

test('a row contains the gold patch only on request', () => {
  expect(JSON.stringify(row('a__b-1'))).not.toContain('THE GOLD');
  expect(row('a__b-1', true).extra_info.patch).toBe('THE GOLD');
  const carried = InstanceSchema.parse(
    JSON.parse(row('a__b-1', true).extra_info.tools_kwargs.bash.create_kwargs.instance),
  );
  expect(carried).toEqual(instance('a__b-1'));
});

test('numbers and splits follow from the instance alone', () => {
  const ids = Array.from({ length: 1000 }, (_, at) => `a__b-${at}`);
  expect(new Set(ids.map(stableIndex)).size).toBe(1000);
  expect(stableIndex('a__b-1')).toBe(stableIndex('a__b-1'));
  const val = ids.filter((id) => splitOf(id, 0.1) === 'val');
  expect(val.length).toBeGreaterThan(60);
  expect(val.length).toBeLessThan(140);
  expect(ids.every((id) => splitOf(id, 0) === 'train')).toBe(true);
  expect(val.every((id) => splitOf(id, 0.5) === 'val')).toBe(true);
});

test.each(PROMPT_STYLES)('a prompt of style %s has the issue and the form of the answer', (style) => {
  const [system, user] = promptOf(instance('a__b-1'), style);
  expect(system?.role).toBe('system');
  expect(user?.content).toContain('It breaks: a__b-1 ü');
  expect(`${system?.content}${user?.content}`).toContain(style === 'tools' ? 'submit_solution' : '</patch>');
});

test('a split without rows is refused before anything is written, unless requested', async () => {
  const folder = temporaryFolder('verl');
  const all = Array.from({ length: 12 }, (_, at) => instance(`a__b-${at}`)).filter(
    ({ instance_id }) => splitOf(instance_id, 0.05) === 'train',
  );
  const write = (valShare: number) =>
    writeVerlDataset(all, join(folder, 'data'), {
      style: 'tools',
      valShare,
      agentName: undefined,
      gold: false,
    });
  await expect(write(0.05)).rejects.toThrow(
    `val.parquet would have no row: of ${all.length} instances none falls to it with --val-share 0.05; choose a larger share, or 0`,
  );
  expect(await readdir(folder)).toEqual([]);
  await expect(write(0)).resolves.toMatchObject({ train: { rows: all.length }, val: { rows: 0 } });
});
