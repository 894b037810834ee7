import type { LiveTurn } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { actionsIn, parting, shownLines, shownLive } from './turns.ts';

const said = (content: string) => ({ role: 'assistant' as const, content });
const asked = (content: string) => ({ role: 'user' as const, content });

const liveTurn = (turn: number, line: LiveTurn['line'], texts: string[]): LiveTurn => ({
  ...{ attempt: 1, turn, at: 0, finish_reason: 'stop', model_seconds: 1, usage: null, commands: [] },
  policy_version: { start: null, end: null },
  messages: [...texts.slice(0, -1).map(asked), said(texts.at(-1) ?? '')],
  answer: texts.length - 1,
  ...(line ? { line } : {}),
});

test('live turns of several lines are shown by line, each with the kind that it has at last', () => {
  const lines = shownLive([
    liveTurn(1, { id: 'L1', kind: 'main' }, ['p', 'a']),
    liveTurn(2, { id: 'L2', kind: 'main' }, ['q', 'c']),
    liveTurn(3, { id: 'L1', kind: 'main' }, ['o', 'b']),
    liveTurn(4, { id: 'L2', kind: 'subagent' }, ['r', 'd']),
  ]);
  const told = lines.map(({ id, kind, given, turns }) => [
    id,
    kind,
    given.map(({ content }) => content),
    turns.map(({ index, answer, seen }) => [index, answer?.content, seen.map(({ content }) => content)]),
  ]);
  expect(told).toEqual([
    [
      'L1',
      'main',
      ['p'],
      [
        [0, 'a', ['o']],
        [1, 'b', []],
      ],
    ],
    [
      'L2',
      'subagent',
      ['q'],
      [
        [0, 'c', ['r']],
        [1, 'd', []],
      ],
    ],
  ]);
});

test('live turns of an agent of the farm are one line', () => {
  const turn = { ...liveTurn(1, undefined, ['p', 'a']), messages: [asked('p'), said('a'), asked('o')] };
  const [line, ...more] = shownLive([{ ...turn, attempt: 0 }, turn]);
  expect(more).toEqual([]);
  expect(line).toMatchObject({ id: 'L1', given: [asked('p')], turns: [{ index: 0, seen: [asked('o')] }] });
  expect(shownLive([])).toEqual([]);
});

test('rollouts of programs differ where their calls differ, because the farm sees no commands', () => {
  const call = (text: string) => ({
    ...said(''),
    tool_calls: [{ id: 'c', type: 'function' as const, function: { name: 'Bash', arguments: text } }],
  });
  const rollout = (...texts: string[]) => {
    const messages = texts.map(call);
    const turns = texts.map((_, message) => ({
      ...{ message, finish_reason: 'stop', model_seconds: 1, usage: null, token_count: null, commands: [] },
      policy_version: { start: null, end: null },
      request: { dialect: 'chat', matched: 'continued', delivered: true },
    }));
    const facts = { format: 'swefarm-trajectory-1', token_mode: null, model: null, endpoint: null } as const;
    return shownLines({ ...facts, messages, turns, exit_status: null })[0].turns;
  };
  const [one, other] = [rollout('ls', 'cat a'), rollout('ls', 'cat b')];
  expect(one.map(actionsIn)).toEqual([['Bash ls'], ['Bash cat a']]);
  expect(parting(one, other)).toBe(1);
  expect(parting(one, one)).toBeNull();
});
