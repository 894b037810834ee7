import { allTurns, linesOf } from '@swefarm/shared';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyLines, BRANCHED, trajectoryOfLines } from '../../test/lines.ts';
import { segmentsOf } from '../formats/tokens/sequences.ts';
import { chosenLines, leftOutOf, weighted } from './lines.ts';

const sum = (values: Iterable<number>): number =>
  Array.from(values).reduce((total, value) => total + value, 0);

test('every sampled token has mask 1 in exactly one segment, or is counted as left out', () => {
  fc.assert(
    fc.property(anyLines, fc.constantFrom('main' as const, 'all' as const), (plans, choice) => {
      const trajectory = trajectoryOfLines(plans);
      const sampled = allTurns(trajectory).flatMap(({ tokens }) => [...(tokens?.generation ?? [])]);
      const segments = segmentsOf(trajectory, choice);
      const trained = segments.flatMap(({ sequence: { ids, mask } }) =>
        [...ids].filter((_, at) => mask[at] === 1),
      );
      expect(new Set(trained).size).toBe(trained.length);
      const left = sum(Object.values(leftOutOf(trajectory, choice)).map(({ tokens }) => tokens));
      expect(trained.length + left).toBe(sampled.length);
      expect(trained.every((id) => id > 0)).toBe(true);
      expect(sum(segments.map(({ facts }) => facts.line_weight))).toBeCloseTo(1);
    }),
  );
});

test('each segment has the log-probabilities and versions of its own sampled tokens only', () => {
  fc.assert(
    fc.property(anyLines, (plans) => {
      for (const { sequence } of segmentsOf(trajectoryOfLines(plans), 'all')) {
        const { ids, mask, logProbs, versions } = sequence;
        expect(logProbs).toEqual(Float32Array.from(ids, (id, at) => (mask[at] ? -id / 8 : 0)));
        expect(versions).toEqual(Int32Array.from(ids, (_, at) => (mask[at] ? 0 : -1)));
      }
    }),
  );
});

test('a fork begins with the tokens of the line that it continues, masked', () => {
  const segments = segmentsOf(trajectoryOfLines(BRANCHED), 'all');
  expect(
    segments.map(({ facts }) => [facts.line, facts.line_kind, facts.line_from, facts.shared_turns]),
  ).toEqual([
    ['L1', 'main', null, 0],
    ['L2', 'subagent', null, 0],
    ['L3', 'summary', null, 0],
    ['L4', 'main', null, 0],
    ['L6', 'subagent', 'L2', 1],
  ]);
  const [, agent, , , fork] = segments.map(({ sequence }) => sequence);
  expect(fork?.ids.subarray(0, 4)).toEqual(agent?.ids.subarray(0, 4));
  expect([...(fork?.mask ?? [])]).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
  expect(segments[0]?.facts).toMatchObject({ line_count: 5, line_weight: 0.2 });
});

test('omitted turns are counted by reason', () => {
  const trajectory = trajectoryOfLines(BRANCHED);
  expect(leftOutOf(trajectory, 'all')).toEqual({ abandoned: { lines: 1, turns: 1, tokens: 5 } });
  expect(leftOutOf(trajectory, 'main')).toEqual({
    abandoned: { lines: 1, turns: 1, tokens: 5 },
    'main line only': { lines: 4, turns: 5, tokens: 12 },
  });
  expect(chosenLines(trajectory, 'main').map(({ id }) => id)).toEqual(['L1']);
});

test('an answer that another line trains or the agent wrote has weight 0', () => {
  const fork = linesOf(trajectoryOfLines(BRANCHED)).find(({ id }) => id === 'L6');
  if (!fork) throw new Error('the example has a fork');
  const write = weighted(fork, ({ content }) => ({ content }));
  expect(fork.messages.map(write)).toEqual([
    { content: 'You are L2.' },
    { content: 'ask 2.1' },
    { content: 'say 2.1', weight: 0 },
    { content: 'ask 6.1' },
    { content: 'say 6.1' },
  ]);
});
