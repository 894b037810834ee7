/**
 * Tests over 300 rollouts of many families in one run, in groups of 8: three fix the bug, three do not, one breaks the code, one does
 * nothing. The instances have no health findings. Prints the share of second evaluations and controls in all evaluations.
 */
import { expect, test } from 'vitest';
import { packageInstances } from './mixedpackages.ts';
import { copiesOf, type DEEDS, type MixedInstance, smallInstances } from './mixedrows.ts';
import { expectMixedRun } from './mixedrun.ts';
import { openScene } from './scene.ts';

const GROUP: (typeof DEEDS)[number][] = [
  ...(['mends it', 'does something else', 'mends it wrongly', 'breaks it'] as const),
  ...(['mends it', 'edits the tests', 'does nothing', 'mends it'] as const),
];
const COPIES = 6;
/** In every sixth group, "edits the tests" is a fix with a sign. In real datasets one gold patch in 20 has a sign (docs/trust.md). */
const SIGNED_EACH = 6;

const withSign = (one: MixedInstance): MixedInstance => ({
  ...one,
  commands: { ...one.commands, 'edits the tests': `${one.commands['mends it']}\necho all: >Makefile` },
  rewards: { ...one.rewards, 'edits the tests': 1 },
});

test('over 300 rollouts of many families: every reward as expected, and a report by family', async () => {
  const scene = openScene();
  const small = copiesOf(await smallInstances(scene.folder), COPIES);
  const instances = [...small, ...(await packageInstances(scene.folder))].map((one, at) =>
    at % SIGNED_EACH === 0 ? withSign(one) : one,
  );
  expect(instances.length * GROUP.length).toBeGreaterThanOrEqual(300);
  expect(new Set(instances.map(({ family }) => family)).size).toBeGreaterThanOrEqual(6);
  const { patch = 0, second = 0, control = 0 } = await expectMixedRun(scene, instances, GROUP);
  const share = (second + control) / (patch + second + control);
  console.log(
    `evaluations: ${patch} of patches, ${second} second, ${control} controls: ${(share * 100).toFixed(1)} % for trust`,
  );
});
