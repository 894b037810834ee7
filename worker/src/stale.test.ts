import type { Turn } from '@swefarm/shared';
import { expect, onTestFinished, test } from 'vitest';
import { watchStaleness } from './stale.ts';

function scene(most: number | null, start: string | null) {
  const policy = { versions: ['w1'] };
  let first: Turn | undefined;
  let told = 0;
  const stale = watchStaleness(
    { most, first: () => first, policy: () => policy, onStale: () => void told++ },
    5,
  );
  onTestFinished(() => stale[Symbol.dispose]());
  return {
    stale,
    policy,
    told: () => told,
    say: () => {
      first = { policy_version: { start, end: start } } as Turn;
    },
  };
}

test('in the middle of a turn, once the policy is too far ahead of the first one', async () => {
  const { policy, say, told, stale } = scene(1, 'w1');
  policy.versions = ['w1', 'w2', 'w3'];
  stale.look();
  expect(told()).toBe(0);
  policy.versions = ['w1', 'w2'];
  say();
  stale.look();
  expect(told()).toBe(0);
  policy.versions = ['w1', 'w2', 'w3'];
  await expect.poll(told).toBeGreaterThan(0);
});

test.each([
  ['a rollout that began with the new weights', 0, 'w3'],
  ['weights of which the trainer said nothing', 0, 'elsewhere'],
  ['a server that tells no version', 0, null],
  ['a run without a limit', null, 'w1'],
])('%s is left alone', (_name, most, start) => {
  const { policy, say, told, stale } = scene(most, start);
  policy.versions = ['w1', 'w2', 'w3'];
  say();
  stale.look();
  expect(told()).toBe(0);
});
