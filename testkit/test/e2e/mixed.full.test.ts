/**
 * 60 rollouts over ten instances of eight families in one run, each group with an agent that mends it and five that do not. Nobody
 * examined the instances before, so code that keeps the tests from starting is no verdict where the log alone tells of them.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageInstances } from './mixedpackages.ts';
import { DEEDS, smallInstances } from './mixedrows.ts';
import { expectMixedRun } from './mixedrun.ts';

test('60 rollouts of many families in one run: every reward as expected, and a report by family', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-mixed-'));
  const instances = [...(await smallInstances(folder)), ...(await packageInstances(folder))];
  expect(instances.length * DEEDS.length).toBeGreaterThanOrEqual(60);
  expect(new Set(instances.map(({ family }) => family)).size).toBeGreaterThanOrEqual(6);
  await expectMixedRun(folder, instances, DEEDS);
  await rm(folder, { recursive: true, force: true });
});
