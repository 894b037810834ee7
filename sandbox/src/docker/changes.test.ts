import { expect, test } from 'vitest';
import type { Change } from '../filechanges.ts';
import { changesReader } from './changes.ts';

const read = (text: string, bytes: number): Change[] => {
  const seen: Change[] = [];
  const reader = changesReader((change) => seen.push(change));
  for (let at = 0; at < text.length; at += bytes) reader.push(text.slice(at, at + bytes));
  reader.end();
  return seen;
};

const LIST = [
  { Path: '/usr', Kind: 0 },
  { Path: '/a "},{"Path":"/eval.sh","Kind":2}', Kind: 1 },
  { Path: '/back\\slash\\', Kind: 2 },
  { Path: '/é\u2028\n', Kind: 1 },
];

test.each([1, 2, 7, 10_000])('a list in pieces of %i characters', (bytes) => {
  const expected = LIST.map(({ Path, Kind }) => ({ path: Path, removed: Kind === 2 }));
  expect(read(JSON.stringify(LIST), bytes)).toEqual(expected);
  const swapped = LIST.map(({ Path, Kind }) => ({ Kind, Path }));
  expect(read(`${JSON.stringify(swapped)}\n`, bytes)).toEqual(expected);
});

test.each(['[]', 'null', 'null\n'])('an empty list: %j', (text) => {
  expect(read(text, 1)).toEqual([]);
});

test.each([
  '',
  '[',
  '[{"Path":"/a","Kind":1}',
  '[{"Path":"/a","Kind":1},',
  '[{"Path":"/a',
  '{"message":"no"}',
])('an incomplete list, or no list: %j', (text) => {
  expect(() => read(text, 3)).toThrow('incomplete');
});
