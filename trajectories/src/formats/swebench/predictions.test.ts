import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { isFolderName, readPredictions } from './predictions.ts';

const KNOWN = new Set(['a__a-1', 'b__b-2', 'c__c-3']);
async function read(name: string, content: string) {
  const path = join(temporaryFolder('predictions'), name);
  await writeFile(path, content);
  return await readPredictions(path, KNOWN);
}
const one = (instance_id: string, model_patch: string | null = 'diff') => ({
  instance_id,
  model_name_or_path: 'org/model',
  model_patch,
});

test.each([
  ['lines', 'p.jsonl', `${JSON.stringify(one('a__a-1'))}\n${JSON.stringify(one('b__b-2', null))}\n`],
  ['a list', 'p.json', JSON.stringify([one('a__a-1'), one('b__b-2', null)])],
  [
    'an object by id',
    'd.json',
    JSON.stringify({ 'a__a-1': one('a__a-1'), 'b__b-2': one('b__b-2', null) }, null, 1),
  ],
])('%s', async (_name, file, content) => {
  expect(await read(file, content)).toEqual({
    predictions: [one('a__a-1'), one('b__b-2', null)],
    problems: [],
  });
});

test('invalid predictions are named by line, and the others are read', async () => {
  const { model_name_or_path: _model, ...nameless } = one('b__b-2');
  const { model_patch: _patch, ...patchless } = one('b__b-2');
  const rows = [
    JSON.stringify(one('a__a-1')),
    '{"instance_id": ',
    JSON.stringify(one('a__a-1', 'another')),
    JSON.stringify(one('x__x-9')),
    JSON.stringify(nameless),
    JSON.stringify(patchless),
    JSON.stringify({ model_name_or_path: 'm', model_patch: '' }),
    JSON.stringify({ ...one('b__b-2'), model_name_or_path: '..' }),
    '[1]',
    JSON.stringify(one('c__c-3', '')),
  ];
  const { predictions, problems } = await read('bad.jsonl', rows.join('\n'));
  expect(predictions).toEqual([one('a__a-1'), one('c__c-3', '')]);
  expect(problems.map(({ where, field }) => `${where} ${field}`)).toEqual([
    'line 2 null',
    'line 3 instance_id',
    'line 4 instance_id',
    'line 5 model_name_or_path',
    'line 6 model_patch',
    'line 7 instance_id',
    'line 8 model_name_or_path',
    'line 9 null',
  ]);
  expect(problems[1]?.found).toBe('a__a-1, which line 1 has too');
});

test.each([
  ['model', true],
  ['org__model', true],
  ['', false],
  ['.', false],
  ['..', false],
  ['a/b', false],
  ['a\0b', false],
  ['m'.repeat(181), false],
])('%j can be a folder: %s', (name, can) => expect(isFolderName(name)).toBe(can));
