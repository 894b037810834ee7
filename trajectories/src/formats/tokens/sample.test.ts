import type { Trajectory } from '@swefarm/shared';
import { madeTrajectory } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { aResult } from '../../../test/result.ts';
import { sampleOf } from './sample.ts';

const MAIN = { lines: 'main', experts: false } as const;

const numbers = (text: string | undefined, array: typeof Int32Array | typeof Float32Array) => {
  const bytes = Buffer.from(text ?? '', 'base64');
  return [...new array(bytes.buffer, bytes.byteOffset, bytes.length / 4)];
};

test('a sample has the stored ids, and log-probabilities for sampled tokens only', () => {
  const made = madeTrajectory(3, 1);
  const { segments, missing } = sampleOf(aResult(), made, MAIN);
  expect(missing).toBeNull();
  expect(segments).toHaveLength(1);
  const [one] = segments;
  const tokens = made.turns.flatMap((turn) => turn.tokens ?? []);
  expect(numbers(one?.prompt_ids, Int32Array)).toEqual([...(tokens[0]?.prompt_suffix ?? [])]);
  expect(numbers(one?.log_probs, Float32Array)).toEqual(tokens.flatMap(({ log_probs }) => [...log_probs]));
  const response = numbers(one?.response_ids, Int32Array);
  expect(one?.turns.map(([start, stop]) => response.slice(start, stop))).toEqual(
    tokens.map(({ generation }) => [...generation]),
  );
  expect(one).not.toHaveProperty('routed_experts');
});

test('an answer whose version changes has a span for each known version', () => {
  const made = madeTrajectory(2, 1);
  const [first, second] = made.turns;
  const sampled = first?.tokens?.generation.length ?? 0;
  const turns = [
    {
      ...first,
      spans: [
        { version: 'v1', tokens: 10 },
        { version: 'v2', tokens: sampled - 10 },
      ],
    },
    { ...second, policy_version: { start: 'v2', end: 'v3' }, spans: undefined },
  ];
  const { segments } = sampleOf(aResult(), { ...made, turns } as unknown as Trajectory, MAIN);
  expect(segments[0]?.spans).toEqual([
    ['v1', 0, 10],
    ['v2', 10, sampled],
  ]);
});

test('a sample includes the stored experts on request', () => {
  const made = madeTrajectory(1, 1);
  const experts = {
    dtype: 'uint8',
    layers: 1,
    top_k: 2,
    start: 0,
    rows: Int8Array.from([1, 2, 3, 4]),
  } as const;
  const [turn] = made.turns;
  if (!turn?.tokens) throw new Error('the turn has tokens');
  turn.tokens.routed_experts = experts;
  const { segments } = sampleOf(aResult(), made, { ...MAIN, experts: true });
  expect(segments[0]?.routed_experts).toEqual([{ ...experts, rows: 'AQIDBA==' }]);
});

test('the sample of a rollout without ids gives the reason', () => {
  expect(sampleOf(aResult(), null, MAIN)).toMatchObject({ segments: [], missing: 'no trajectory is stored' });
  const made = madeTrajectory(1, 1);
  const turns = made.turns.map((turn) => ({ ...turn, tokens: null }));
  expect(sampleOf(aResult(), { ...made, turns }, MAIN).missing).toBe('the policy returned no token ids');
});
