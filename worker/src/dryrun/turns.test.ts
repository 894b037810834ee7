import { madeTrajectory } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { notContiguous, shareOf, withVersions } from './turns.ts';

/** Returns the ids of the prompt and of the answer of each turn. */
function sequences({ turns }: ReturnType<typeof madeTrajectory>): number[][] {
  let seen: number[] = [];
  return turns.map(({ tokens }) => {
    if (!tokens) throw new Error('a turn has no ids');
    const prompt = [...seen.slice(0, tokens.prefix_length), ...tokens.prompt_suffix];
    seen = [...prompt, ...tokens.generation];
    return prompt;
  });
}

test('rewritten ids make one prompt not contiguous, and change no sampled id', () => {
  const stored = madeTrajectory(6, 1);
  const changed = notContiguous(stored);
  expect(changed.contiguous).toBe(false);
  expect(changed.turns.map(({ tokens }) => tokens?.generation)).toEqual(
    stored.turns.map(({ tokens }) => tokens?.generation),
  );
  const [before, after] = [sequences(stored), sequences(changed)];
  expect(after.map(({ length }) => length)).toEqual(before.map(({ length }) => length));
  const differing = after.map((ids, at) => ids.filter((id, place) => id !== before[at]?.[place]).length);
  expect(differing.slice(0, 3)).toEqual([0, 0, 0]);
  expect(differing[3]).toBeGreaterThan(0);
  expect(notContiguous(madeTrajectory(1, 1)).contiguous).toBe(true);
});

test('versions share the turns equally, and change in the middle of an answer', () => {
  const shares = [0, 1, 2, 3].map((at) => shareOf(['a', 'b'], at, 4));
  expect(shares).toEqual([
    { start: 'a', end: 'a' },
    { start: 'a', end: 'a' },
    { start: 'a', end: 'b' },
    { start: 'b', end: 'b' },
  ]);
  const [turn] = madeTrajectory(1, 1).turns;
  if (!turn) throw new Error('no turn');
  expect(withVersions(turn, { start: 'a', end: 'b' }).spans).toEqual([
    { version: 'a', tokens: 45 },
    { version: 'b', tokens: 45 },
  ]);
});
