import type { Message, Trajectory, Turn } from '@swefarm/shared';
import { madeTrajectory } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { countUnreadCalls } from './result.ts';

const KIMI = '<|tool_calls_section_begin|><|tool_call_begin|>bash';
const call = { id: 'a', type: 'function' as const, function: { name: 'bash', arguments: '{}' } };

function trajectoryOf(...answers: Partial<Message>[]): Trajectory {
  const made = madeTrajectory(1, 1);
  const turn = made.turns[0] as Turn;
  const messages = answers.map((answer) => ({ role: 'assistant', content: null, ...answer }) as Message);
  return { ...made, messages, turns: messages.map((_, message) => ({ ...turn, message })) };
}

test('answers with an unreadable tool call are counted, with the most frequent marker', () => {
  expect(
    countUnreadCalls(
      trajectoryOf(
        { content: KIMI },
        { content: `<think>${KIMI}</think>I am done.` },
        { content: '<tool_call>{"name": }</tool_call>' },
        { content: `I look. ${KIMI}` },
        { content: KIMI, tool_calls: [call] },
        { content: 'no call' },
      ),
    ),
  ).toEqual({ answers: 3, marker: '<|tool_calls_section_begin|>' });
});
test('a rollout without unreadable calls has no count', () => {
  expect(countUnreadCalls(trajectoryOf({ tool_calls: [call] }, { content: 'I am done.' }))).toBeUndefined();
});
