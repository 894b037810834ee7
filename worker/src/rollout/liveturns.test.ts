import type { Message } from '@swefarm/shared';
import { bareTrajectory, bareTurn as turnAt } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { createLiveTurns } from './liveturns.ts';

const say = (role: Message['role'], content: string): Message => ({ role, content });

test('each turn of a line has the messages since the answer before, and is taken once', () => {
  const [first, second, forked] = [turnAt(1), turnAt(3), turnAt(1)];
  const main = bareTrajectory({
    messages: [say('user', 'q'), say('assistant', 'a'), say('user', 'b'), say('assistant', 'c')],
    turns: [first, second],
    lines: [
      {
        ...{ id: 'L2', kind: 'subagent', from: { line: 'L1', turns: 1, messages: 2 }, masked: null },
        messages: [say('user', 'x'), say('assistant', 'y')],
        turns: [forked],
      },
    ],
  });
  const turns = createLiveTurns(1, 10, () => 7);
  for (const turn of [first, second, forked]) turns.add(main, turn);
  const { turns: shown, giveBack } = turns.take();
  const texts = shown.map(({ messages, answer, line }) => [
    messages.map(({ content }) => content).join(' '),
    answer,
    line?.id,
  ]);
  expect(texts).toEqual([
    ['q a', 1, 'L1'],
    ['b c', 1, 'L1'],
    ['x y', 1, 'L2'],
  ]);
  expect([turns.take().turns, turns.count()]).toEqual([[], 3]);
  giveBack();
  expect(turns.take().turns).toEqual(shown);
});
