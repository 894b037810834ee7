import { expect, test } from 'vitest';
import { createTtlCache } from './ttlcache.ts';

test('values expire after their lifetime', () => {
  let now = 0;
  const trusted = createTtlCache<number>(1000, () => now);
  const names = (): string[] => [...trusted.entries()].map(([name]) => name);
  for (let at = 0; at < 500; at++) trusted.set(`old ${at}`, at);
  now = 600;
  trusted.set('old 7', 70);
  trusted.set('new', 1);
  expect(names()).toHaveLength(501);
  expect(trusted.get('old 7')).toBe(70);
  now = 1000;
  expect(trusted.get('old 3')).toBeUndefined();
  expect(names()).toEqual(['old 7', 'new']);
  trusted.delete('new');
  now = 1600;
  expect(names()).toEqual([]);
});
