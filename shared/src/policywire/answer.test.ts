import { describe, expect, test } from 'vitest';
import { readAnswer } from './answer.ts';

const read = (text: string, tools = true) => readAnswer(text, tools, (place) => `c${place}`);

describe('thinking', () => {
  test.each([
    ['before the answer', '<think>\nhm\n</think>\n\nyes', 'hm', 'yes'],
    ['opened by the template', 'hm</think>yes', 'hm', 'yes'],
    ['never closed', '<think>hm, and', 'hm, and', ''],
    ['none', 'yes', undefined, 'yes'],
    ['empty', '<think>\n\n</think>\n\nyes', undefined, 'yes'],
  ])('%s', (_, text, reasoning, content) => {
    expect(read(text)).toEqual({
      role: 'assistant',
      content,
      ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    });
  });
});

describe('tool calls', () => {
  const call = (id: string, name: string, args: string) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  });
  test('of Hermes and Qwen: JSON, one or many, after plain words', () => {
    const text =
      'I look.\n<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>\n' +
      '<tool_call>{"name":"bash","arguments":"{\\"command\\":\\"pwd\\"}"}</tool_call>';
    expect(read(text)).toEqual({
      role: 'assistant',
      content: 'I look.',
      tool_calls: [call('c0', 'bash', '{"command":"ls"}'), call('c1', 'bash', '{"command":"pwd"}')],
    });
  });
  test('of Qwen3-Coder: tags, with line breaks of the value kept', () => {
    const text =
      '<tool_call>\n<function=bash>\n<parameter=command>\ncat <<E\n</x>\nE\n\n</parameter>\n</function>\n</tool_call>';
    expect(read(text).tool_calls).toEqual([call('c0', 'bash', '{"command":"cat <<E\\n</x>\\nE\\n"}')]);
  });
  test('a call without arguments', () => {
    expect(read('<tool_call>{"name":"submit_solution"}</tool_call>').tool_calls).toEqual([
      call('c0', 'submit_solution', '{}'),
    ]);
  });
  test.each([
    ['not closed', '<tool_call>{"name":"bash"'],
    ['no JSON', '<tool_call>{"name":"bash", "arguments": Infinity}</tool_call>'],
    ['no name', '<tool_call>{"arguments":{}}</tool_call>'],
    ['no object', '<tool_call>null</tool_call>'],
    ['a tag without its end', '<tool_call><function=bash><parameter=command>ls</function></tool_call>'],
    ['one of two', '<tool_call>{"name":"bash"}</tool_call><tool_call>{</tool_call>'],
  ])('%s: the whole is text', (_, text) => {
    expect(read(text)).toEqual({ role: 'assistant', content: text });
  });
  test('without tools the markup is text', () => {
    const text = '<tool_call>{"name":"bash"}</tool_call>';
    expect(read(text, false)).toEqual({ role: 'assistant', content: text });
  });
  test('a hostile text of a megabyte is read at once', () => {
    const text = '<tool_call>'.repeat(100_000);
    expect(read(text).content).toBe(text);
  });
});
