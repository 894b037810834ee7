/** The client of OpenAI reads our answers, whole and streamed. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import type { Dialect, Message } from '@swefarm/shared';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AgentAnswer, REFUSAL_STATUS } from '../src/dialects/dialect.ts';
import { modelEntry, modelList } from '../src/dialects/models.ts';
import { DIALECTS } from '../src/dialects/registry.ts';

const CALLS: Message['tool_calls'] = [
  { id: 'call_1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls \u2028 é"}' } },
  { id: 'call_2', type: 'function', function: { name: 'bash', arguments: '{"command": "cut' } },
];
const TEXT = 'Two words.\nIt has a \u2028 line end and 🧪.';
const MESSAGES: Record<string, Message> = {
  text: { role: 'assistant', content: TEXT },
  empty: { role: 'assistant', content: null },
  calls: { role: 'assistant', content: null, tool_calls: CALLS },
  all: { role: 'assistant', content: TEXT, reasoning_content: 'A thought.', tool_calls: CALLS },
};
const answerOf = (name: string): AgentAnswer => {
  const message = MESSAGES[name.replace('-cut', '')] ?? { role: 'assistant', content: '' };
  const finish = name.endsWith('-cut') ? 'length' : message.tool_calls ? 'tool_calls' : 'stop';
  return { id: 'answer1', message, finish, usage: { prompt_tokens: 11, completion_tokens: 7 } };
};

const readBody = async (incoming: IncomingMessage): Promise<unknown> =>
  JSON.parse((await textOf(incoming)) || 'null');

/** The name of the model in a request selects the answer. */
async function respond(path: string, body: unknown): Promise<{ status: number; text: string; type: string }> {
  const json = (value: unknown, status = 200) => ({
    status,
    text: JSON.stringify(value),
    type: 'application/json',
  });
  if (path === '/v1/models') return json(modelList('one'));
  if (path.startsWith('/v1/models/')) return json(modelEntry('one'));
  const dialect: Dialect = path.endsWith('/responses') ? 'responses' : 'chat';
  const form = DIALECTS[dialect];
  const request = form.read(body);
  const { model } = request;
  if (model === 'overflow' || model === 'over')
    return json(form.refusal(model, 'no more'), REFUSAL_STATUS[model]);
  const answer = answerOf(model);
  if (!request.stream) return json(form.whole(request, answer));
  const alive = form.alive(request, answer.id);
  const rest =
    model === 'refused'
      ? form.refusedStream(request, answer.id, 'over', 'no more')
      : form.events(request, answer);
  return {
    status: 200,
    text: form.begin(request, answer.id) + alive + alive + rest,
    type: 'text/event-stream',
  };
}

let server: Server;
let client: OpenAI;
beforeAll(async () => {
  server = createServer((incoming, response) => {
    void readBody(incoming)
      .then((body) => respond(incoming.url ?? '', body))
      .then(({ status, text, type }) => response.writeHead(status, { 'content-type': type }).end(text));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'key', maxRetries: 0 });
});
afterAll(() => server.close());

const NAMES = ['text', 'empty', 'calls', 'all', 'all-cut', 'text-cut'];

describe('chat', () => {
  const messages = [{ role: 'user' as const, content: 'Hello' }];
  const ask = (model: string) => client.chat.completions.create({ model, messages });
  const stream = (model: string) =>
    client.chat.completions
      .stream({ model, messages, stream_options: { include_usage: true } })
      .finalChatCompletion();

  test.each(NAMES)('the client reads the answer %s, and its stream gives the same', async (model) => {
    const whole = await ask(model);
    const { message, finish } = answerOf(model);
    expect(whole.choices[0]?.message).toMatchObject({
      content: message.content || (message.tool_calls ? null : ''),
      ...(message.tool_calls ? { tool_calls: message.tool_calls } : {}),
      ...(message.reasoning_content ? { reasoning_content: message.reasoning_content } : {}),
    });
    expect(whole).toMatchObject({
      id: 'chatcmpl-answer1',
      model,
      choices: [{ finish_reason: finish }],
      usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    });
    if (finish === 'length') return;
    const streamed = await stream(model);
    expect(streamed.usage).toEqual(whole.usage);
    expect(streamed.choices[0]?.finish_reason).toBe(finish);
    const { content, tool_calls } = streamed.choices[0]?.message ?? {};
    expect(content ?? '').toBe(message.content ?? '');
    expect(tool_calls ?? []).toMatchObject(message.tool_calls ?? []);
  });

  test('a stream that is refused in its middle fails', async () => {
    await expect(stream('refused')).rejects.toThrow('no more');
  });
});

describe('responses', () => {
  test.each(NAMES)('the client reads the answer %s, and its stream gives the same', async (model) => {
    const { message, finish } = answerOf(model);
    const whole = await client.responses.create({ model, input: 'Hello' });
    expect(whole.output_text).toBe(message.content ?? '');
    expect(whole.status).toBe(finish === 'length' ? 'incomplete' : 'completed');
    expect(whole.usage).toMatchObject({ input_tokens: 11, output_tokens: 7, total_tokens: 18 });
    const calls = whole.output.flatMap((item) =>
      item.type === 'function_call' ? [[item.call_id, item.name, item.arguments]] : [],
    );
    expect(calls).toEqual(
      (message.tool_calls ?? []).map(({ id, function: called }) => [id, called.name, called.arguments]),
    );
    const stream = client.responses.stream({ model, input: 'Hello' });
    const numbers: number[] = [];
    for await (const event of stream)
      if ((event.type as string) !== 'keepalive') numbers.push(event.sequence_number);
    expect(numbers).toEqual(numbers.map((_number, at) => at));
    const streamed = await stream.finalResponse();
    expect({ ...streamed, output_parsed: undefined }).toMatchObject({
      id: whole.id,
      status: whole.status,
      usage: whole.usage,
      output_text: whole.output_text,
    });
    expect(streamed.output.map(({ type }) => type)).toEqual(whole.output.map(({ type }) => type));
  });

  test('reasoning has its summary, and the id of the answer', async () => {
    const { output } = await client.responses.create({ model: 'all', input: 'Hello' });
    expect(output[0]).toMatchObject({
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: 'A thought.' }],
      encrypted_content: 'answer1',
    });
  });

  test('a stream that is refused in its middle ends as failed', async () => {
    const stream = client.responses.stream({ model: 'refused', input: 'Hello' });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types.at(-1)).toBe('response.failed');
  });
});

test('the client reads refusals with their codes', async () => {
  const messages = [{ role: 'user' as const, content: 'Hello' }];
  await expect(client.chat.completions.create({ model: 'overflow', messages })).rejects.toMatchObject({
    status: 400,
    code: 'context_length_exceeded',
  });
  await expect(client.responses.create({ model: 'over', input: 'Hello' })).rejects.toMatchObject({
    status: 403,
    error: { message: 'no more', type: 'permission_error' },
  });
});

test('the client lists and reads models', async () => {
  const ids: string[] = [];
  for await (const { id } of client.models.list()) ids.push(id);
  expect(ids).toEqual(['one']);
  expect((await client.models.retrieve('one')).id).toBe('one');
});
