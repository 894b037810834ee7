import { expect, test } from 'vitest';
import { words } from './commands.ts';

test('a line is split at white space, a value is never split, and an empty value is a word', () => {
  const line = words`
    run --name ${'a b'} --dir=${'/x y'}/${1}
    --patch ${''} ${[]} ${['c d', '']} ${'last'}`;
  expect(line).toEqual(['run', '--name', 'a b', '--dir=/x y/1', '--patch', '', 'c d', '', 'last']);
});

test('a line without words is empty', () => {
  expect(words``).toEqual([]);
});
