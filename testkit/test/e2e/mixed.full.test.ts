/**
 * Over 300 rollouts of many families in one run, in groups of 8: three that mend it, three that do not, one that breaks it, one that does
 * nothing. Nobody examined the instances before. Prints the price of trust: second evaluations and controls as a share of all.
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
/** Of gold patches of real datasets one in twenty has a sign (docs/trust.md): here the fix of every sixth group that would edit tests. */
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
