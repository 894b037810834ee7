import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { parquetReadObjects } from 'hyparquet';
import { fileWriter, ParquetWriter } from 'hyparquet-writer';
import { expect, test } from 'vitest';
import { type Shape, schemaOf } from './parquetschema.ts';
import { addRowGroup, type GroupColumn } from './rowgroup.ts';

const COLUMNS = { id: 'text', ids: ['int32'], logs: ['float'] } as const satisfies Record<string, Shape>;

async function writtenAndRead(groups: readonly (readonly GroupColumn[])[]) {
  const folder = temporaryFolder('rowgroup');
  const path = join(folder, 'table.parquet');
  const file = new ParquetWriter({
    writer: fileWriter(path),
    schema: schemaOf(COLUMNS),
    statistics: false,
  });
  for (const columns of groups) addRowGroup(file, columns, columns[0]?.data.length ?? 0);
  await file.finish();
  const bytes = await readFile(path);
  return await parquetReadObjects({ file: new Uint8Array(bytes).buffer });
}

test('lists of numbers are unchanged in each row, also empty and missing lists', async () => {
  const rows = await writtenAndRead([
    [
      { name: 'id', data: ['a', 'b'] },
      {
        name: 'ids',
        data: [Int32Array.of(1, -2, 3), Int32Array.of(2 ** 31 - 1)],
        encoding: 'PLAIN',
        codec: 'UNCOMPRESSED',
      },
      { name: 'logs', data: [Float32Array.of(-0.5, -Infinity, 0), Float32Array.of(-0.25)] },
    ],
    [
      { name: 'id', data: ['c', 'd', null] },
      { name: 'ids', data: [new Int32Array(0), null, Uint8Array.of(0, 1)] },
      { name: 'logs', data: [null, Float32Array.of(1), new Float32Array(0)] },
    ],
  ]);
  expect(rows).toEqual([
    { id: 'a', ids: [1, -2, 3], logs: [-0.5, -Infinity, 0] },
    { id: 'b', ids: [2 ** 31 - 1], logs: [-0.25] },
    // The reader has undefined for a list that is absent.
    { id: 'c', ids: [], logs: undefined },
    { id: 'd', ids: undefined, logs: [1] },
    { id: null, ids: [0, 1], logs: [] },
  ]);
});
