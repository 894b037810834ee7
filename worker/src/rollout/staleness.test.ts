import type { PolicyRecord, RunRecord, Trajectory, Turn } from '@swefarm/shared';
import { expect, onTestFinished, test } from 'vitest';
import { isStale, versionsOf, watchStaleness } from './staleness.ts';

const talk = (...versions: [start: string | null, end: string | null][]) =>
  ({ turns: versions.map(([start, end]) => ({ policy_version: { start, end } }) as Turn) }) as Trajectory;

function scene(most: number | null, start: string | null) {
  const policy = { versions: ['w1'] };
  let trajectory: Trajectory | null = null;
  let staleCalls = 0;
  const stale = watchStaleness(
    { most, trajectory: () => trajectory, policy: () => policy, onStale: () => void staleCalls++ },
    5,
  );
  onTestFinished(() => stale[Symbol.dispose]());
  return {
    stale,
    policy,
    staleCalls: () => staleCalls,
    answer: () => {
      trajectory = talk([start, start]);
    },
  };
}

test('a rollout becomes stale during a turn once the policy is too far ahead of its first turn', async () => {
  const { policy, answer, staleCalls, stale } = scene(1, 'w1');
  policy.versions = ['w1', 'w2', 'w3'];
  stale.check();
  expect(staleCalls()).toBe(0);
  policy.versions = ['w1', 'w2'];
  answer();
  stale.check();
  expect(staleCalls()).toBe(0);
  policy.versions = ['w1', 'w2', 'w3'];
  await expect.poll(staleCalls).toBeGreaterThan(0);
});

test.each([
  ['a rollout that began with the new weights', 0, 'w3'],
  ['a rollout of weights that the trainer did not announce', 0, 'elsewhere'],
  ['a rollout of a server without versions', 0, null],
  ['a rollout of a run without a limit', null, 'w1'],
])('%s is not cancelled', (_name, most, start) => {
  const { policy, answer, staleCalls, stale } = scene(most, start);
  policy.versions = ['w1', 'w2', 'w3'];
  answer();
  stale.check();
  expect(staleCalls()).toBe(0);
});

test('weights that a full record of versions no longer lists are too old, not unknown', () => {
  const versions = Array.from({ length: 100 }, (_, step) => `w${step + 2}`);
  const old = scene(99, 'w1');
  old.policy.versions = versions;
  old.answer();
  old.stale.check();
  expect(old.staleCalls()).toBe(1);
  const oldest = scene(99, 'w2');
  oldest.policy.versions = versions;
  oldest.answer();
  oldest.stale.check();
  expect(oldest.staleCalls()).toBe(0);
});

test('before a commit Redis is read if the run has a limit, a policy and known weights', async () => {
  let reads = 0;
  const record = { name: 'p', versions: ['w1', 'w2', 'w3'], endpoints: [] } as unknown as PolicyRecord;
  const policies = {
    async get() {
      reads++;
      return [record];
    },
  };
  const run = { max_staleness: 1, policy: { name: 'p', urls: [] } } as unknown as RunRecord;
  const began = talk([null, null], ['w1', 'w2']);
  expect(await isStale(run, began, policies)).toBe(true);
  expect(await isStale({ ...run, max_staleness: 2 }, began, policies)).toBe(false);
  const other = { ...run, policy: { name: 'q', urls: [] } } as unknown as RunRecord;
  expect(await isStale(other, began, policies)).toBe(false);
  expect(reads).toBe(3);
  expect(await isStale({ ...run, max_staleness: null }, began, policies)).toBe(false);
  expect(await isStale(run, talk([null, 'w1']), policies)).toBe(false);
  expect(await isStale(run, null, policies)).toBe(false);
  expect(reads).toBe(3);
});

test('a result has the oldest and the newest weights', () => {
  expect(versionsOf(talk([null, 'w1'], ['w1', 'w2'], ['w2', null]))).toEqual({
    policy_version_first: 'w1',
    policy_version_last: 'w2',
  });
  expect(versionsOf(talk())).toEqual({ policy_version_first: null, policy_version_last: null });
});
