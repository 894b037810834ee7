/** Which actions of an answer exports show: those that the agent ran. */
import type { CommandRecord, Message, Turn } from '@swefarm/shared';
import { bareTurn } from '@swefarm/testkit';
import { describe, expect, test } from 'vitest';
import { conversationOf, templateMessage } from './conversation.ts';

const ranOf = (command: string): CommandRecord => ({
  ...{ command, exit_code: 0, seconds: 0, output_bytes: 0, note: null },
});
const turnOf = (...commands: string[]): Turn => bareTurn(0, { commands: commands.map(ranOf) });
const read = (message: Message, turn: Turn | null) => {
  const { steps } = conversationOf({ messages: [message], turns: turn ? [turn] : [] });
  const { calls = [], ran = [], thought } = steps[0] ?? {};
  return {
    calls: calls.map(({ args }) => args?.command),
    ran: ran.map(({ args }) => args?.command),
    thought,
  };
};
const text = (content: string): Message => ({ role: 'assistant', content });

const THOUGHT =
  '<think>\nMaybe:\n```bash\nrm -rf build\n```\nNo.\n</think>\nLook first.\n\n```bash\nls -la\n```';

describe('an answer of text', () => {
  test.each([
    ['with its turn', turnOf('ls -la')],
    ['without its turn', null],
  ])('a block in a thought is no action, %s', (_, turn) => {
    const { calls, thought } = read(text(THOUGHT), turn);
    expect(calls).toEqual(['ls -la']);
    expect(thought).toBe(THOUGHT.slice(0, THOUGHT.indexOf('\n\n```bash\nls')));
  });

  test('a block of four backticks is one action', () => {
    const command = 'cat > a.md <<"E"\n```\ncode\n```\nE';
    expect(read(text(`Write it.\n\n\`\`\`\`bash\n${command}\n\`\`\`\``), turnOf(command))).toEqual({
      ...{ calls: [command], ran: [command], thought: 'Write it.' },
    });
  });

  test('a refused or cut answer has no action', () => {
    const two = '```bash\nls\n```\nthen\n```bash\npwd\n```';
    expect(read(text(two), null)).toEqual({ calls: [], ran: [], thought: two });
    const cut = '```bash\nls\n```';
    expect(read(text(cut), turnOf())).toEqual({ calls: [], ran: [], thought: cut });
  });

  test('an executed command counts even if its text parses differently now', () => {
    expect(read(text('no block'), turnOf('ls'))).toEqual({ calls: ['ls'], ran: ['ls'], thought: 'no block' });
  });
});

describe('an answer of tool calls', () => {
  const called = (...commands: string[]): Message => ({
    ...{ role: 'assistant', content: null },
    tool_calls: commands.map((raw, at) => ({
      ...{ id: `c${at}`, type: 'function', function: { name: 'bash', arguments: raw } },
    })),
  });
  const [ls, pwd] = ['{"command":"ls"}', '{"command":"pwd"}'];

  test('calls that did not run are calls but not actions', () => {
    expect(read(called(ls, pwd), turnOf('ls'))).toMatchObject({ calls: ['ls', 'pwd'], ran: ['ls'] });
    expect(read(called(ls, '{"command'), turnOf())).toMatchObject({ calls: ['ls', undefined], ran: [] });
    expect(read(called(ls, pwd), null)).toMatchObject({ ran: ['ls', 'pwd'] });
  });
});

test('messages for chat templates have arguments as objects of text', () => {
  const written = ['{"command": "ls"}', '{"command": 5, "all": ["a"]}', '{"command": "ls', '', '[1]'];
  const tool_calls = written.map((text, at) => ({
    id: `c${at}`,
    type: 'function' as const,
    function: { name: 'bash', arguments: text },
  }));
  const message = templateMessage({ role: 'assistant', content: 'Go.', tool_calls });
  const calls = [
    { command: 'ls' },
    { command: '5', all: '["a"]' },
    { arguments: '{"command": "ls' },
    { arguments: '' },
    { arguments: '[1]' },
  ].map((args, at) => ({ id: `c${at}`, type: 'function', function: { name: 'bash', arguments: args } }));
  expect(message).toEqual({ role: 'assistant', content: 'Go.', tool_calls: calls });
  expect(templateMessage({ role: 'user', content: 'x' })).toEqual({ role: 'user', content: 'x' });
});
