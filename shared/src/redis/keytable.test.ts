import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { keysFor } from './keys.ts';
import { redisKeys, redisPage } from './keytable.ts';

test('docs/redis-keys.md is current (npm run docs:redis)', () => {
  expect(readFileSync(new URL('../../../docs/redis-keys.md', import.meta.url), 'utf8')).toBe(redisPage());
});

/** All names of a tree of keys; each parameter is X. */
function namesOf(tree: object): string[] {
  return Object.values(tree).flatMap((value: unknown) => {
    if (typeof value === 'function') return namesOf({ made: value(...Array(value.length).fill('X')) });
    return typeof value === 'object' && value !== null ? namesOf(value) : [String(value)];
  });
}

test('every key has a row with its type and life time', () => {
  const { prefix, ...keys } = keysFor('p');
  const rows = redisKeys().map(({ name }) => `${prefix}:${name.replaceAll(/[A-Z]+/g, 'X')}`);
  expect(rows.toSorted()).toEqual(namesOf(keys).toSorted());
});
