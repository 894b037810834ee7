/** Tests six families in one run, with two rollouts of each instance. mixed.full.test.ts has over 300 rollouts. */
import { expect, test } from 'vitest';
import { smallInstances } from './mixedrows.ts';
import { expectMixedRun } from './mixedrun.ts';
import { openScene } from './scene.ts';

test('a dataset of six families in one run: every reward as expected, and a report by family', async () => {
  const scene = openScene();
  const instances = (await smallInstances(scene.folder)).filter(({ id }) => id !== 'acme__calc-live');
  expect(new Set(instances.map(({ family }) => family)).size).toBe(6);
  await expectMixedRun(scene, instances, ['mends it', 'does something else']);
});
