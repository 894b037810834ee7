/** Tests that rewards are read as Harbor 0.25.0 reads the same files. */
import { expect, test } from 'vitest';
import { readRewards } from './rewards.ts';

const read = (files: { json?: string; txt?: string }, key?: string) =>
  readRewards(
    { from: 'rewards', folder: '/v', ...(key === undefined ? {} : { key }) },
    {
      ...{ log: '', exitCode: 0, program: undefined },
      files: new Map(Object.entries(files).map(([name, text]) => [`/v/reward.${name}`, text])),
    },
  );

test.each<[string, number]>([
  ['1', 1],
  [' 0.5\n', 0.5],
  ['-3.5e1\n\n', -35],
  ['1_0', 10],
  ['.5', 0.5],
  ['5.', 5],
])('reward.txt %j is read as Python reads it', (txt, reward) => {
  expect(read({ txt })).toMatchObject({ readable: true, reward, parts: { reward } });
});

test.each([
  ...[
    { txt: '' },
    { txt: ' \n' },
    { txt: 'nan' },
    { txt: 'inf' },
    { txt: '1e309' },
    { txt: '0x1' },
    { txt: '1__0' },
  ],
  ...[{ json: '' }, { json: '[1, 0]' }, { json: 'null' }, { json: '0.5' }, { json: '{"reward": "1"}' }],
  ...[{ json: '{"reward": 1, "note": "x"}' }, { json: '{"reward": NaN}' }, { json: '{"reward": 1e309}' }],
  ...[{}, { json: '{}' }, { json: '{"a": 1, "b": 0}' }, { txt: '1001' }, { json: '', txt: '1' }],
])('%j gives no reward', (files) => {
  expect(read(files)).toMatchObject({ readable: false, why: 'no_reward' });
});

test('reward.json has priority, and its numbers within bounds are parts', () => {
  expect(read({ json: '{"reward": 0.75, "kept": true, "bytes": 5000}', txt: '1' })).toMatchObject({
    ...{ readable: true, reward: 0.75, parts: { reward: 0.75, kept: 1 } },
  });
});

test('the reward is the only key, or the key that the caller chooses', () => {
  expect(read({ json: '{"score": 0.25}' })).toMatchObject({ reward: 0.25 });
  expect(read({ json: '{"a": 1, "b": 0.5}' }, 'b')).toMatchObject({ reward: 0.5, parts: { a: 1, b: 0.5 } });
  expect(read({ json: '{"a": 1, "b": 0.5}' }, 'c')).toMatchObject({ readable: false });
  expect(read({ json: '{"a": 1, "b": 0.5}' })).toMatchObject({ readable: false, parts: { a: 1, b: 0.5 } });
});
