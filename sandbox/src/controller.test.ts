import { expect, test } from 'vitest';
import { parseCount } from './controller.ts';

test('a number in a reply is finite for any number of digits', () => {
  expect(parseCount('4096')).toBe(4096);
  for (const word of ['9'.repeat(400), '1e999', 'Infinity', '-1', '1.5', '', undefined])
    expect(parseCount(word)).toBeNull();
});
