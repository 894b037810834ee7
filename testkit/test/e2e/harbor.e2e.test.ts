/** Tests that our Harbor tasks get the rewards of Harbor, with the solution and with an untouched tree. `npm run ci:full` compares further runtimes. */
import { beforeAll, expect, test } from 'vitest';
import { compare, OWN } from '../../harbor/compare.ts';
import { makeHarborBase } from '../../src/images/harborbase.ts';

beforeAll(makeHarborBase, 120_000);

test('Harbor tasks have the rewards of Harbor on Docker', { timeout: 300_000 }, async () => {
  const compared = await compare({ ...OWN, runtime: 'docker' });
  expect(compared.length).toBe(28);
  expect(compared.filter(({ equal }) => !equal)).toEqual([]);
});
