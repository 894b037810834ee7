import type { ArtifactContent } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { differences } from './artifacts.ts';
import type { FaultKind } from './schedule.ts';
import { actOf } from './script.ts';
import { type Evidence, judgeFarm, type Seen } from './verdict.ts';

const seen = (index: number, more: Partial<Seen> = {}): Seen => ({
  rollout_id: `run.asked.${index}`,
  instance_id: 'asked',
  rollout_index: index,
  outcome: 'judged',
  reward_row: 'evaluated',
  failure: null,
  ...{ attempt: 1, claim: 'c1', artifact: 'redis:a', tokens: { completion: 1 } },
  ...actOf('asked', index).earns,
  ...more,
});
const failed = (
  index: number,
  failure: NonNullable<Seen['failure']>['class'],
  reward: number | null = null,
) => seen(index, { outcome: 'failed', reward, resolved: null, failure: { class: failure, message: 'why' } });

const evidence = (results: readonly Seen[], more: Partial<Evidence> = {}): Evidence => ({
  asked: ['run.asked.0', 'run.asked.1'],
  lines: results,
  calls: [],
  struck: new Set<FaultKind>(['worker_kill']),
  leftovers: [],
  results,
  ...more,
});

test('one expected result for each rollout is no problem', () => {
  expect(judgeFarm(evidence([seen(0), seen(1)]))).toEqual([]);
});

test.each<[string, Evidence, RegExp]>([
  ['lost', evidence([seen(0)]), /asked\.1: no result/],
  ['doubled', evidence([seen(0), seen(1), seen(1)]), /asked\.1: 2 results/],
  [
    'invented',
    evidence([seen(0), seen(1), seen(2)]),
    /asked\.2: a result of a rollout that was not submitted/,
  ],
  ['another reward', evidence([seen(0, { reward: 0 }), seen(1)]), /reward 0.*earns reward 1/],
  ['turns played twice', evidence([seen(0, { turns: 9 }), seen(1)]), /9 turns/],
  ['cancelled', evidence([seen(0, { outcome: 'cancelled' }), seen(1)]), /without a cancellation/],
  ['a reward from a failure', evidence([failed(0, 'lost', 0), seen(1)]), /failed as lost with reward 0/],
  ['a failure without its fault', evidence([failed(0, 'node_disk'), seen(1)]), /which no fault explains/],
  ['a bug', evidence([failed(0, 'bug'), seen(1)]), /which no fault explains/],
  ['left', evidence([seen(0), seen(1)], { leftovers: ['a container'] }), /left behind: a container/],
  ['not collected', evidence([seen(0), seen(1)], { lines: [seen(0)] }), /asked\.1: not in the output/],
])('%s is a problem', (_name, given, problem) => {
  expect(judgeFarm(given).join('\n')).toMatch(problem);
});

test('a failure without reward that a fault explains is no problem', () => {
  expect(judgeFarm(evidence([failed(0, 'lost'), seen(1)]))).toEqual([]);
});

test('a call gets one answer, from its own rollout', () => {
  const results = [seen(0), seen(1)];
  const call = (name: string, rollout_id: string | null, reward: number | null) => ({
    ...{ name, rollout_id, reward },
    failed: rollout_id === null ? '503' : null,
  });
  const judged = (...calls: Evidence['calls']) => judgeFarm(evidence(results, { calls }));
  expect(judged(call('a', 'run.asked.0', 1), call('b', 'run.asked.1', 0))).toEqual([]);
  expect(judged(call('a', 'run.asked.0', 1), call('b', 'run.asked.0', 1))).toHaveLength(1);
  expect(judged(call('a', 'run.asked.0', 0))).toHaveLength(1);
  expect(judged(call('a', null, null))).toHaveLength(1);
});

test('an artifact of another attempt or verdict differs from its result', () => {
  const result = seen(0);
  const content = {
    ...{ format: 'swefarm-artifact-1', rollout_id: result.rollout_id, attempt: 1, claim: 'c1' },
    trajectory: { turns: Array(result.turns), contiguous: true },
    report: { resolved: true },
  } as unknown as ArtifactContent;
  expect(differences(result, content)).toEqual([]);
  expect(differences(result, { ...content, claim: 'c2' })).toEqual([
    'run.asked.0: claim c1, its artifact has c2',
  ]);
  expect(differences(result, { ...content, report: null })).toHaveLength(1);
  expect(differences({ ...result, attempt: 2, turns: 9 }, content)).toHaveLength(2);
});
