/** What each dialect reads from a request, and what it refuses. */
import type { Dialect } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { call } from '../../test/agentrequest.ts';
import { DIALECTS } from './registry.ts';

const read = (dialect: Dialect, body: unknown) => DIALECTS[dialect].read(body);
const SCHEMA = { type: 'object', properties: { command: { type: 'string' } } };

/** The same history in each dialect. */
const MESSAGES = [
  { role: 'system', content: 'Be brief.\nUse tools.' },
  { role: 'user', content: 'Fix it.' },
  {
    role: 'assistant',
    content: 'I look.',
    reasoning_content: 'Think.',
    tool_calls: [call('c1', 'bash', '{"command":"ls","n":1}'), call('c2', 'bash', '{"command":"pwd"}')],
  },
  { role: 'tool', content: '[image omitted]', tool_call_id: 'c2' },
  { role: 'tool', content: 'a\nb', tool_call_id: 'c1' },
  { role: 'system', content: 'A note.' },
  { role: 'assistant', content: null, tool_calls: [call('c3', 'bash', '{"command": "cut')] },
  { role: 'tool', content: 'unreadable', tool_call_id: 'c3' },
];

const BODIES: Record<Dialect, object> = {
  chat: {
    model: 'm',
    stream: true,
    stream_options: { include_usage: true },
    max_completion_tokens: 100,
    temperature: 1,
    messages: [
      {
        role: 'developer',
        content: [
          { type: 'text', text: 'Be brief.' },
          { type: 'text', text: 'Use tools.', cache_control: { type: 'ephemeral' } },
        ],
      },
      { role: 'user', content: 'Fix it.', name: 'someone' },
      {
        role: 'assistant',
        content: 'I look.',
        reasoning_content: 'Think.',
        annotations: [],
        tool_calls: [
          call('c1', 'bash', '{"command": "ls", "n": 1}'),
          call('c2', 'bash', '{"command":"pwd"}'),
        ],
      },
      { role: 'tool', tool_call_id: 'c2', content: [{ type: 'image_url', image_url: { url: 'data:' } }] },
      { role: 'tool', tool_call_id: 'c1', name: 'bash', content: 'a\nb' },
      { role: 'system', content: 'A note.' },
      { role: 'assistant', content: '', tool_calls: [call('c3', 'bash', '{"command": "cut')] },
      { role: 'tool', tool_call_id: 'c3', content: 'unreadable' },
    ],
    tools: [
      {
        type: 'function',
        function: { name: 'bash', description: 'Runs.', parameters: SCHEMA, strict: true },
      },
    ],
  },
  messages: {
    model: 'm',
    stream: true,
    max_tokens: 100,
    metadata: { user_id: 'u' },
    system: [
      { type: 'text', text: 'x-anthropic-billing-header: cc_version=1; cch=12345;' },
      { type: 'text', text: 'Be brief.' },
      { type: 'text', text: 'Use tools.', cache_control: { type: 'ephemeral' } },
    ],
    messages: [
      { role: 'user', content: 'Fix it.' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Think.', signature: 'answer1' },
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'c1', name: 'bash', input: { command: 'ls', n: 1 } },
          { type: 'tool_use', id: 'c2', name: 'bash', input: { command: 'pwd' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'c2', content: [{ type: 'image', source: {} }] },
          {
            type: 'tool_result',
            tool_use_id: 'c1',
            content: [{ type: 'text', text: 'a\nb' }],
            is_error: false,
          },
        ],
      },
      { role: 'system', content: [{ type: 'text', text: 'A note.' }] },
      {
        role: 'assistant',
        content: [
          {
            type: 'tool_use',
            id: 'c3',
            name: 'bash',
            input: { __unparsedToolInput: { raw: '{"command": "cut', len: 16 } },
          },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'c3', content: 'unreadable', is_error: true }],
      },
    ],
    tools: [{ name: 'bash', description: 'Runs.', input_schema: SCHEMA }],
  },
  responses: {
    model: 'm',
    stream: true,
    max_output_tokens: 100,
    store: false,
    instructions: 'Be brief.\nUse tools.',
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'Fix it.' }] },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'Think.' }],
        encrypted_content: 'answer1',
      },
      {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'I look.', annotations: [] }],
      },
      { type: 'function_call', call_id: 'c1', name: 'bash', arguments: '{"command": "ls", "n": 1}' },
      { type: 'function_call', call_id: 'c2', name: 'bash', arguments: '{"command":"pwd"}' },
      { type: 'function_call_output', call_id: 'c2', output: [{ type: 'input_image', image_url: 'data:' }] },
      { type: 'function_call_output', call_id: 'c1', output: 'a\nb' },
      { type: 'message', role: 'developer', content: 'A note.' },
      { type: 'function_call', call_id: 'c3', name: 'bash', arguments: '{"command": "cut' },
      { type: 'function_call_output', call_id: 'c3', output: 'unreadable' },
    ],
    tools: [{ type: 'function', name: 'bash', description: 'Runs.', parameters: SCHEMA, strict: false }],
  },
};
const DIALECT_NAMES = Object.keys(BODIES) as Dialect[];

test.each(DIALECT_NAMES)('%s gives the same history and tools as the other dialects', (dialect) => {
  const request = read(dialect, BODIES[dialect]);
  expect(request).toMatchObject({ dialect, stream: true, model: 'm', maxTokens: 100, streamUsage: true });
  expect(request.messages).toEqual(MESSAGES);
  expect(request.tools).toEqual([
    { type: 'function', function: { name: 'bash', description: 'Runs.', parameters: SCHEMA } },
  ]);
  expect(request.dropped).toEqual(['picture']);
  expect([...request.answers]).toEqual(dialect === 'chat' ? [] : [[2, 'answer1']]);
});

test('consecutive answers of the responses dialect are separate', () => {
  const said = (text: string) => ({ type: 'message', role: 'assistant', content: text });
  const called = (id: string) => ({ type: 'function_call', call_id: id, name: 'bash', arguments: '{}' });
  const { messages } = read('responses', {
    model: 'm',
    input: [said('One.'), said('Two.'), called('c1'), { type: 'reasoning', summary: [] }, called('c2')],
  });
  expect(messages).toEqual([
    { role: 'assistant', content: 'One.' },
    { role: 'assistant', content: 'Two.', tool_calls: [call('c1', 'bash', '{}')] },
    { role: 'assistant', content: null, tool_calls: [call('c2', 'bash', '{}')] },
  ]);
});

test('texts beside results of calls become messages of their own, in order', () => {
  const text = (value: string) => ({ type: 'text', text: value });
  const { messages } = read('messages', {
    model: 'm',
    messages: [
      { role: 'user', content: [text('a'), { type: 'tool_result', tool_use_id: 'c' }, text('b'), text('c')] },
    ],
  });
  expect(messages).toEqual([
    { role: 'user', content: 'a' },
    { role: 'tool', content: '', tool_call_id: 'c' },
    { role: 'user', content: 'b\nc' },
  ]);
});

describe('tools of other kinds', () => {
  test('the responses dialect flattens namespaces and free text, and drops tools of servers', () => {
    const { tools, shapes, dropped, messages } = read('responses', {
      model: 'm',
      input: [
        { type: 'custom_tool_call', call_id: 'c1', name: 'apply_patch', input: '*** "x"' },
        { type: 'custom_tool_call_output', call_id: 'c1', output: 'done' },
        { type: 'function_call', call_id: 'c2', name: 'spawn', namespace: 'agents', arguments: '{}' },
        { type: 'web_search_call', id: 'ws' },
        { type: 'additional_tools', tools: [{ type: 'function', name: 'late' }] },
      ],
      tools: [
        { type: 'custom', name: 'apply_patch', description: 'Patches.', format: { type: 'grammar' } },
        { type: 'namespace', name: 'agents', tools: [{ type: 'function', name: 'spawn' }] },
        { type: 'web_search' },
        { type: 'function', name: 'apply_patch' },
      ],
    });
    const object = { type: 'object', properties: {} };
    const input = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] };
    expect(tools.map((tool) => tool.function)).toEqual([
      { name: 'apply_patch', description: 'Patches.', parameters: input },
      { name: 'agents__spawn', description: '', parameters: object },
      { name: 'late', description: '', parameters: object },
    ]);
    expect(Object.fromEntries(shapes)).toEqual({
      apply_patch: { kind: 'custom', name: 'apply_patch', namespace: null },
      agents__spawn: { kind: 'function', name: 'spawn', namespace: 'agents' },
    });
    expect(dropped).toEqual(['tool web_search', 'tool apply_patch (second)', 'item web_search_call']);
    expect(messages.flatMap(({ tool_calls }) => tool_calls ?? [])).toEqual([
      call('c1', 'apply_patch', '{"input":"*** \\"x\\""}'),
      call('c2', 'agents__spawn', '{}'),
    ]);
  });

  test('the chat and messages dialects read free text and drop tools of servers', () => {
    const user = { role: 'user', content: 'Hello' };
    const chat = read('chat', {
      model: 'm',
      messages: [
        user,
        { role: 'assistant', tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'p', input: 'x' } }] },
      ],
      tools: [{ type: 'custom', custom: { name: 'p' } }, { type: 'web_search' }],
    });
    expect(chat.messages[1]?.tool_calls).toEqual([call('c', 'p', '{"input":"x"}')]);
    expect(chat.dropped).toEqual(['tool web_search']);
    const messages = read('messages', {
      model: 'm',
      messages: [user],
      tools: [
        { type: 'bash_20250124', name: 'bash' },
        { type: 'custom', name: 'p' },
      ],
    });
    expect(messages.dropped).toEqual(['tool bash_20250124']);
    expect(messages.tools.map((tool) => tool.function.name)).toEqual(['p']);
  });
});

describe('fields that the policy does not get', () => {
  const chat = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] };
  const messages = { ...chat, max_tokens: 5 };
  const responses = { model: 'm', input: 'Hello' };

  test.each<[Dialect, object, string[]]>([
    ['chat', { ...chat, stop: ['x'], response_format: { type: 'json_object' } }, ['response_format', 'stop']],
    ['chat', { ...chat, tool_choice: 'required', unknown: 1, stop: null }, ['tool_choice']],
    [
      'chat',
      { ...chat, parallel_tool_calls: false, tools: [{ type: 'x' }] },
      ['tool x', 'parallel_tool_calls'],
    ],
    ['chat', { ...chat, messages: [{ role: 'user', content: [{ type: 'file' }] }] }, ['part file']],
    ['messages', { ...messages, tool_choice: { type: 'tool', name: 'x' } }, ['tool_choice']],
    ['messages', { ...messages, messages: [{ role: 'assistant', content: '{' }] }, ['prefill']],
    ['messages', { ...messages, mcp_servers: [], stop_sequences: ['x'] }, ['mcp_servers', 'stop_sequences']],
    ['responses', { ...responses, text: { format: { type: 'json_schema' } } }, ['text.format']],
    ['responses', { ...responses, text: { format: { type: 'text' } }, tool_choice: 'auto' }, []],
  ])('%s names them: %j', (dialect, body, dropped) => {
    expect(read(dialect, body).dropped).toEqual(dropped);
  });

  test('tool_choice none forbids calls', () => {
    expect(read('chat', { ...chat, tool_choice: 'none' }).callsAllowed).toBe(false);
    expect(read('responses', { ...responses, tool_choice: 'none' }).callsAllowed).toBe(false);
    expect(read('messages', { ...messages, tool_choice: { type: 'none' } }).callsAllowed).toBe(false);
    expect(read('messages', messages).callsAllowed).toBe(true);
  });
});
