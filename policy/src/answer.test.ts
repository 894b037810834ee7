import { describe, expect, test } from 'vitest';
import { parseAnswer } from './answer.ts';
import { openedThought, splitThinking } from './thinking.ts';

const read = (text: string, { tools = true, opened = false, parser = 'auto' as const } = {}) =>
  parseAnswer(text, {
    withTools: tools,
    ...{ parser, opened: opened && openedThought('<think>'), callId: (index: number) => `c${index}` },
  });

describe('thinking', () => {
  test.each([
    ['before the answer', '<think>\nhm\n</think>\n\nyes', false, 'hm', 'yes'],
    ['opened by the template', 'hm</think>yes', true, 'hm', 'yes'],
    ['never closed', '<think>hm, and', false, 'hm, and', ''],
    ['opened by the template and never closed', 'hm, and', true, 'hm, and', ''],
    ['none', 'yes', false, undefined, 'yes'],
    ['empty', '<think>\n\n</think>\n\nyes', false, undefined, 'yes'],
    [
      'a word that a command writes is text',
      '```bash\ncat > a <<E\n</think>\nE\n```',
      false,
      undefined,
      '```bash\ncat > a <<E\n</think>\nE\n```',
    ],
    [
      'only the first word closes the thought',
      'hm</think>```bash\ngrep "</think>" a\n```',
      true,
      'hm',
      '```bash\ngrep "</think>" a\n```',
    ],
    ['nothing but the end of a thought is text, too', 'a </think> b', false, undefined, 'a </think> b'],
  ])('%s', (_, text, opened, reasoning, content) => {
    expect(read(text, { opened })).toEqual({
      role: 'assistant',
      content,
      ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    });
  });
});

describe.each([
  ['<think>', '</think>', '<tool_call>{"name":"bash"}</tool_call>'],
  [
    '<seed:think>',
    '</seed:think>',
    '<seed:tool_call><function=bash><parameter=command>git reset --hard</parameter></function></seed:tool_call>',
  ],
  ['[THINK]', '[/THINK]', '[TOOL_CALLS]bash[ARGS]{"command":"git reset --hard"}'],
])('a thought between %s and %s', (open, close, called) => {
  const thought = `I could ${called} but no.`;
  test.each([
    ['begins the answer', `${open}\n${thought}${close}\n\nyes`, 'A:'],
    ['was opened by the template', `${thought}\n${close}yes`, `A:${open}\n`],
  ])('that %s calls nothing', (_, text, head) => {
    const form = { withTools: true, parser: 'auto', callId: String } as const;
    expect(parseAnswer(text, { ...form, opened: openedThought(head) })).toEqual({
      role: 'assistant',
      content: 'yes',
      reasoning_content: thought,
    });
  });
  test('ends only at its own closing tag', () => {
    const other = open === '[THINK]' ? '</think>' : '[/THINK]';
    const apart = { reasoning: `${other} hm`, rest: 'yes' };
    expect(splitThinking(`${open}${other} hm${close}yes`, false)).toEqual(apart);
    expect(splitThinking(`${other} hm${close}yes`, openedThought(open))).toEqual(apart);
  });
  test('is found behind a chat server, outside of code', () => {
    const code = `\`\`\`\n${close}\n\`\`\`\n`;
    expect(splitThinking(`${code}hm${close}yes`, null)).toEqual({ reasoning: `${code}hm`, rest: 'yes' });
    expect(splitThinking(code, null)).toEqual({ reasoning: null, rest: code });
  });
  test('is absent if the template wrote an empty thought', () => {
    expect(openedThought(`A:${open}\n${close}\n`)).toBe(false);
  });
});

test('a long thought that the template opened, behind a chat server, is found in linear time', () => {
  const text = `${'- a line of thought\n'.repeat(100_000)}</think>yes`;
  // CPU time of this thread, because other processes slow the machine down.
  const started = process.threadCpuUsage();
  expect(splitThinking(text, null).rest).toBe('yes');
  const { user, system } = process.threadCpuUsage(started);
  expect((user + system) / 1000).toBeLessThan(1000);
});

const call = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});

describe('tool calls', () => {
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
  test('of Qwen3-Coder: tags, and values with line breaks', () => {
    const text =
      '<tool_call>\n<function=bash>\n<parameter=command>\ncat <<E\n</x>\nE\n\n</parameter>\n</function>\n</tool_call>';
    expect(read(text).tool_calls).toEqual([call('c0', 'bash', '{"command":"cat <<E\\n</x>\\nE\\n"}')]);
  });
  test('a call without arguments', () => {
    expect(read('<tool_call>{"name":"submit_solution"}</tool_call>').tool_calls).toEqual([
      call('c0', 'submit_solution', '{}'),
    ]);
  });
  test('have the sampled ids, unless the ids are equal', () => {
    const kimi = (...ids: string[]) =>
      ids.map((id) => `<|tool_call_begin|>${id}<|tool_call_argument_begin|>{}<|tool_call_end|>`).join('');
    const idsOf = (text: string) => read(text).tool_calls?.map(({ id }) => id);
    expect(idsOf(kimi('functions.a:1', 'functions.b:2'))).toEqual(['functions.a:1', 'functions.b:2']);
    expect(idsOf(kimi('functions.a:1', 'functions.a:1'))).toEqual(['c0', 'c1']);
    expect(idsOf(kimi(`functions.${'a'.repeat(100)}:1`))).toEqual(['c0']);
  });
  test('a call in a thought is no call', () => {
    const text = '<think>or <tool_call>{"name":"rm"}</tool_call>?</think>no';
    expect(read(text)).toEqual({
      role: 'assistant',
      content: 'no',
      reasoning_content: 'or <tool_call>{"name":"rm"}</tool_call>?',
    });
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
    expect(read(text, { tools: false })).toEqual({ role: 'assistant', content: text });
  });
  test('a hostile text of a megabyte is read in linear time', () => {
    const text = '<tool_call>'.repeat(100_000);
    expect(read(text).content).toBe(text);
  });
});

describe('channels of gpt-oss', () => {
  const ANALYSIS = '<|channel|>analysis<|message|>Look first.<|end|><|start|>assistant';
  test('a thought, words before, and a call', () => {
    const text = `${ANALYSIS}<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{"command":"ls"}`;
    expect(read(text)).toEqual({
      role: 'assistant',
      content: 'I look.',
      reasoning_content: 'Look first.',
      tool_calls: [call('c0', 'bash', '{"command":"ls"}')],
    });
  });
  test('the recipient may precede the channel, and a call may contain an end token', () => {
    const text = ' to=functions.bash<|channel|>commentary json<|message|>{"command":"ls"}<|call|>';
    expect(read(text)).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [call('c0', 'bash', '{"command":"ls"}')],
    });
  });
  test('a final answer, with tools and with fenced commands', () => {
    const text = `${ANALYSIS}<|channel|>final<|message|>\`\`\`bash\nls\n\`\`\`<|return|>`;
    for (const tools of [true, false]) {
      expect(read(text, { tools })).toEqual({
        role: 'assistant',
        content: '```bash\nls\n```',
        reasoning_content: 'Look first.',
      });
    }
  });
  test('an unreadable answer is text', () => {
    const text = `${ANALYSIS}<|channel|>commentary to=functions.bash`;
    expect(read(text)).toEqual({ role: 'assistant', content: text });
  });
});
