import { fileWith, lines } from '@swefarm/datasets/test/rows.ts';
import { expect, test } from 'vitest';
import { readPatches } from './patches.ts';

const wanted = [{ instance_id: 'a' }];

test('predictions are read in the forms of the harness', async () => {
  const one = { instance_id: 'a', model_name_or_path: 'm', model_patch: 'p' };
  const files = [
    await fileWith('p.jsonl', lines(one, { instance_id: 'b', model_patch: null })),
    await fileWith('p.json', JSON.stringify([one])),
    await fileWith('p.json', JSON.stringify({ a: one })),
  ];
  for (const path of files) expect(await readPatches(path, wanted)).toEqual(new Map([['a', ['p']]]));
  const twice = await fileWith('p.jsonl', lines(one, { ...one, model_patch: null }));
  expect(await readPatches(twice, wanted)).toEqual(new Map([['a', ['p', '']]]));
});

test('an error names missing and malformed predictions', async () => {
  const path = await fileWith('p.jsonl', lines({ instance_id: 'a', model_patch: 3 }, { model_patch: 'x' }));
  await expect(readPatches(path, wanted)).rejects.toThrow(
    /line 1: model_patch: .*the number 3[\s\S]*line 2: instance_id/,
  );
  const other = await fileWith('p.jsonl', lines({ instance_id: 'b', model_patch: 'x' }));
  await expect(readPatches(other, wanted)).rejects.toThrow(/has no prediction for a;/);
});
