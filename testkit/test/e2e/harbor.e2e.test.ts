/** Tests that our Harbor tasks get the rewards of Harbor, with the solution and with an untouched tree. `npm run ci:full` compares further runtimes. */
import { beforeAll, expect, test } from 'vitest';
import { compare, makeBase, OWN } from '../../harbor/compare.ts';

beforeAll(makeBase, 120_000);

test('Harbor tasks have the rewards of Harbor on Docker', { timeout: 300_000 }, async () => {
  const compared = await compare({ ...OWN, runtime: 'docker' });
  expect(compared.length).toBe(28);
  expect(compared.filter(({ equal }) => !equal)).toEqual([]);
});
