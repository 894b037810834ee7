import { bareTurn as turn } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { allAnswers, allTurns, lastMainTurn, linesOf, ownTurns } from './lines.ts';
import type { Line, Message, ToolDefinition, Trajectory } from './trajectory.ts';

const ask = (content: string): Message => ({ role: 'user', content });
const say = (content: string): Message => ({ role: 'assistant', content });
const BASH: ToolDefinition = {
  type: 'function',
  function: { name: 'bash', description: '', parameters: {} },
};

const line = (over: Partial<Line> & Pick<Line, 'id' | 'messages' | 'turns'>): Line => ({
  ...{ kind: 'main', from: null, masked: null },
  ...over,
});

/** The main line has two turns; L3 leaves it after the first turn, L4 leaves L3 after L3's first turn. */
const TRAJECTORY = {
  tools: [BASH],
  messages: [ask('p'), say('a'), ask('o'), say('b')],
  turns: [turn(1), turn(3)],
  lines: [
    line({ id: 'L2', kind: 'subagent', messages: [ask('q'), say('s')], turns: [turn(1)] }),
    line({
      ...{ id: 'L4', from: { line: 'L3', turns: 1, messages: 2 } },
      ...{ messages: [ask('o3'), say('e')], turns: [turn(1)] },
    }),
    line({
      ...{ id: 'L3', kind: 'abandoned', masked: 'abandoned', from: { line: 'L1', turns: 1, messages: 2 } },
      ...{ messages: [ask('o2'), say('c'), ask('x'), say('d')], turns: [turn(1), turn(3)] },
    }),
  ],
} satisfies Partial<Trajectory>;

const textsOf = (messages: readonly Message[]) => messages.map(({ content }) => content).join(' ');

test('each line is a whole conversation with the messages and tools of what it continues', () => {
  const lines = linesOf(TRAJECTORY);
  expect(lines.map(({ id, messages }) => `${id}: ${textsOf(messages)}`)).toEqual([
    'L1: p a o b',
    'L2: q s',
    'L4: p a o2 c o3 e',
    'L3: p a o2 c x d',
  ]);
  expect(lines.map(({ tools }) => tools?.length)).toEqual([1, undefined, 1, 1]);
  const answers = lines.map(({ messages, turns }) => turns.map(({ message }) => messages[message]?.content));
  expect(answers).toEqual([['a', 'b'], ['s'], ['a', 'c', 'e'], ['a', 'c', 'd']]);
  expect(lines.map((one) => ownTurns(one).length)).toEqual([2, 1, 1, 2]);
});

test('all turns and all answers of a rollout count once', () => {
  expect(allTurns(TRAJECTORY)).toHaveLength(6);
  expect(textsOf(allAnswers(TRAJECTORY))).toBe('a b s e c d');
  const { lines: _, ...alone } = TRAJECTORY;
  expect(allTurns(alone)).toBe(alone.turns);
  expect(linesOf(alone)).toHaveLength(1);
});

test('a line of a title may come before the main line', () => {
  const title = line({ id: 'L1', kind: 'side', masked: 'side', messages: [say('t')], turns: [turn(0)] });
  const [main, other] = linesOf({ ...TRAJECTORY, line: 'L2', lines: [title] });
  expect([main.id, main.kind, other?.id]).toEqual(['L2', 'main', 'L1']);
});

test.each([
  ['an unknown line', 'L9'],
  ['itself', 'L2'],
])('a line that continues %s is a damaged artifact', (_, from) => {
  const broken = line({ id: 'L2', from: { line: from, turns: 1, messages: 1 }, messages: [], turns: [] });
  expect(() => linesOf({ ...TRAJECTORY, lines: [broken] })).toThrow(/line L\d of a trajectory/);
});

test('the last turn is that of the line which replaced the main line, if one did', () => {
  expect(lastMainTurn(TRAJECTORY)).toBe(TRAJECTORY.turns[1]);
  const condensed = line({ id: 'L5', messages: [ask('summary'), say('f')], turns: [turn(1)] });
  expect(lastMainTurn({ ...TRAJECTORY, lines: [...TRAJECTORY.lines, condensed] })).toBe(condensed.turns[0]);
});
