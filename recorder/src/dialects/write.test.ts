/** The answers of each dialect: their forms on the wire, and that an echo reads as the answer. */
import type { Dialect, Message } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { call } from '../../test/agentrequest.ts';
import type { AgentAnswer, AgentRequest } from './dialect.ts';
import { DIALECTS } from './registry.ts';

const MESSAGE: Message = {
  role: 'assistant',
  content: 'I look.',
  reasoning_content: 'Think.',
  tool_calls: [call('c1', 'bash', '{"command":"ls"}'), call('c2', 'bash', '{"command": "cut')],
};
const answer = (message: Message, finish: AgentAnswer['finish'] = 'tool_calls'): AgentAnswer => ({
  id: 'answer1',
  message,
  finish,
  usage: { prompt_tokens: 11, completion_tokens: 7 },
});
const user = { role: 'user', content: 'Hello' };
const EMPTY: Record<Dialect, object> = {
  chat: { model: 'm', messages: [user], stream: true },
  messages: { model: 'm', messages: [user], stream: true },
  responses: { model: 'm', input: 'Hello', stream: true },
};
const request = (dialect: Dialect, more: object = {}): AgentRequest =>
  DIALECTS[dialect].read({ ...EMPTY[dialect], ...more });
const FORMS = Object.keys(EMPTY) as Dialect[];

type Event = { event: string | null; data: Record<string, unknown> };
/** Reads server-sent events; the last one of the chat dialect is no JSON. */
const eventsOf = (text: string): Event[] =>
  text
    .split('\n\n')
    .filter((block) => block !== '' && !block.endsWith('[DONE]'))
    .map((block) => {
      const lines = block.split('\n');
      const named = lines.find((line) => line.startsWith('event: '));
      const data = lines.find((line) => line.startsWith('data: ')) ?? '';
      return { event: named?.slice(7) ?? null, data: JSON.parse(data.slice(6)) };
    });
const types = (text: string) => eventsOf(text).map(({ event }) => event);

/** The parts of a whole answer that an agent puts into its next request. */
function echo(dialect: Dialect, whole: unknown): object {
  const body = whole as { choices?: [{ message: object }]; content?: unknown; output?: unknown[] };
  if (dialect === 'chat') return { messages: [user, body.choices?.[0].message] };
  if (dialect === 'messages') return { messages: [user, { role: 'assistant', content: body.content }] };
  return { input: [{ role: 'user', content: 'Hello' }, ...(body.output ?? [])] };
}

test.each(FORMS)('the echo of a whole answer of %s reads as the answer', (dialect) => {
  const asked = request(dialect);
  const whole = DIALECTS[dialect].whole(asked, answer(MESSAGE));
  const next = request(dialect, echo(dialect, whole));
  expect(next.messages).toEqual([user, MESSAGE]);
  expect(next.answers.get(1)).toBe(dialect === 'chat' ? undefined : 'answer1');
});

test.each(FORMS)('%s gives an answer twice with the same bytes', (dialect) => {
  const { begin, events, whole } = DIALECTS[dialect];
  const once = [begin(request(dialect), 'answer1'), events(request(dialect), answer(MESSAGE))];
  expect([begin(request(dialect), 'answer1'), events(request(dialect), answer(MESSAGE))]).toEqual(once);
  expect(whole(request(dialect), answer(MESSAGE))).toEqual(whole(request(dialect), answer(MESSAGE)));
});

test('messages sends the events of Anthropic in their order', () => {
  const { begin, alive, events } = DIALECTS.messages;
  const asked = request('messages');
  expect(types(begin(asked, 'answer1') + alive(asked, 'answer1'))).toEqual(['ping', 'ping']);
  const block = (deltas: number) => [
    'content_block_start',
    ...Array<string>(deltas).fill('content_block_delta'),
    'content_block_stop',
  ];
  const sent = eventsOf(events(asked, answer(MESSAGE)));
  expect(sent.map(({ event }) => event)).toEqual([
    'message_start',
    ...block(2),
    ...block(1),
    ...block(1),
    ...block(1),
    'message_delta',
    'message_stop',
  ]);
  expect(sent.map(({ data }) => data.type)).toEqual(sent.map(({ event }) => event));
  expect(sent[0]?.data.message).toMatchObject({
    id: 'msg_answer1',
    usage: { input_tokens: 11, output_tokens: 7 },
  });
  expect(sent.at(-2)?.data).toMatchObject({
    delta: { stop_reason: 'tool_use' },
    usage: { output_tokens: 7 },
  });
});

test('an input that is no object has the form in which Claude Code gives it back', () => {
  const whole = DIALECTS.messages.whole(
    request('messages'),
    answer({ role: 'assistant', content: null, tool_calls: [call('c', 'bash', '"ls"')] }),
  );
  expect(whole).toMatchObject({
    content: [{ type: 'tool_use', id: 'c', input: { __unparsedToolInput: { raw: '"ls"' } } }],
  });
});

test('chat sends the number of tokens only on request', () => {
  const { events } = DIALECTS.chat;
  const asked = request('chat', { stream_options: { include_usage: true } });
  const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
  expect(eventsOf(events(asked, answer(MESSAGE))).at(-1)?.data).toMatchObject({ choices: [], usage });
  expect(events(request('chat'), answer(MESSAGE))).not.toContain('usage');
});

test('responses returns calls in the form in which their tools were offered', () => {
  const asked = request('responses', {
    tools: [
      { type: 'custom', name: 'apply_patch' },
      { type: 'namespace', name: 'agents', tools: [{ type: 'function', name: 'spawn' }] },
    ],
  });
  const calls = [
    call('c1', 'apply_patch', '{"input":"*** a"}'),
    call('c2', 'apply_patch', '*** no JSON'),
    call('c3', 'agents__spawn', '{"message":"x"}'),
  ];
  const message: Message = { role: 'assistant', content: null, tool_calls: calls };
  expect(DIALECTS.responses.whole(asked, answer(message))).toMatchObject({
    output: [
      { type: 'custom_tool_call', call_id: 'c1', name: 'apply_patch', input: '*** a' },
      { type: 'custom_tool_call', call_id: 'c2', name: 'apply_patch', input: '*** no JSON' },
      {
        type: 'function_call',
        call_id: 'c3',
        name: 'spawn',
        namespace: 'agents',
        arguments: '{"message":"x"}',
      },
    ],
  });
  const streamed = types(DIALECTS.responses.events(asked, answer(message)));
  expect(streamed.slice(0, 4)).toEqual([
    'response.output_item.added',
    'response.custom_tool_call_input.delta',
    'response.custom_tool_call_input.done',
    'response.output_item.done',
  ]);
});

test.each<[Dialect, object]>([
  ['chat', { choices: [{ finish_reason: 'length' }] }],
  ['messages', { stop_reason: 'max_tokens' }],
  ['responses', { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }],
])('%s tells that an answer is cut', (dialect, expected) => {
  const cut = answer({ role: 'assistant', content: 'I' }, 'length');
  expect(DIALECTS[dialect].whole(request(dialect), cut)).toMatchObject(expected);
});

describe('refusals', () => {
  test.each(FORMS)('only the refusal of %s for a full context speaks of length', (dialect) => {
    const { refusal, refusedStream } = DIALECTS[dialect];
    const texts = [
      JSON.stringify(refusal('over', 'the rollout is over: context_limit')),
      JSON.stringify(refusal('bad_request', 'the prompt is too long')),
      refusedStream(request(dialect), 'answer1', 'over', 'maximum context length'),
    ];
    for (const text of texts) expect(text).not.toMatch(/context|length|too long|maximum/i);
    expect(JSON.stringify(refusal('over', 'turn limit'))).toContain('turn limit');
    expect(JSON.stringify(refusal('overflow', '9 of 8 tokens'))).toMatch(
      dialect === 'messages' ? /prompt is too long: 9 of 8/ : /context_length_exceeded/,
    );
  });
});

test('characters at which clients end a line are escaped', () => {
  const message: Message = { role: 'assistant', content: 'a\u2028b\u0085c' };
  for (const dialect of FORMS) {
    const text = DIALECTS[dialect].events(request(dialect), answer(message, 'stop'));
    expect(text).toContain('a\\u2028b\\u0085c');
  }
});
