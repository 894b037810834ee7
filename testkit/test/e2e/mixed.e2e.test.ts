/** Six families in one run, two rollouts each; mixed.full.test.ts has 40 instances and 320 rollouts. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { smallInstances } from './mixedrows.ts';
import { expectMixedRun } from './mixedrun.ts';

test('a dataset of six families in one run: every reward as expected, and a report by family', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-mixed-'));
  const instances = (await smallInstances(folder)).filter(({ id }) => id !== 'acme__calc-live');
  expect(new Set(instances.map(({ family }) => family)).size).toBe(6);
  await expectMixedRun(folder, instances, ['mends it', 'does something else']);
  await rm(folder, { recursive: true, force: true });
});
