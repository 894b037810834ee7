/** OpenAI chat completions. */
import type { Message } from '@swefarm/shared';
import { contentText } from './content.ts';
import { type AgentAnswer, type AgentRequest, BadRequest, type DialectForm } from './dialect.ts';
import {
  type Fields,
  listOf,
  namesOf,
  requireBody,
  requireFields,
  requireName,
  textOf,
  tokensOf,
} from './fields.ts';
import { type Call, freeTextCall, freeTextOf, functionCall, OfferedTools, shapeOf } from './offered.ts';
import { openaiError } from './refusal.ts';
import { data } from './sse.ts';

function readCall(value: unknown, path: string): Call {
  const call = requireFields(value, path);
  const id = requireName(call.id, `${path}.id`);
  if (call.type === 'custom') {
    const custom = requireFields(call.custom, `${path}.custom`);
    return freeTextCall(
      id,
      requireName(custom.name, `${path}.custom.name`),
      textOf(custom.input, `${path}.custom.input`),
    );
  }
  const called = requireFields(call.function, `${path}.function`);
  return functionCall(
    id,
    requireName(called.name, `${path}.function.name`),
    textOf(called.arguments, `${path}.function.arguments`),
  );
}

function readAssistant(message: Fields, content: string, path: string): Message {
  const calls = listOf(message.tool_calls, `${path}.tool_calls`).map((call, at) =>
    readCall(call, `${path}.tool_calls[${at}]`),
  );
  const reasoning =
    textOf(message.reasoning_content, `${path}.reasoning_content`) ||
    textOf(message.reasoning, `${path}.reasoning`);
  return {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

function readMessage(value: unknown, path: string, dropped: Set<string>): Message {
  const message = requireFields(value, path);
  const content = contentText(message.content, `${path}.content`, dropped);
  switch (message.role) {
    case 'system':
    case 'developer':
      return { role: 'system', content };
    case 'user':
      return { role: 'user', content };
    case 'assistant':
      return readAssistant(message, content, path);
    case 'tool':
      return {
        role: 'tool',
        content,
        tool_call_id: requireName(message.tool_call_id, `${path}.tool_call_id`),
      };
    default:
      throw new BadRequest(`${path}.role: expected system, developer, user, assistant or tool`);
  }
}

function readTools(body: Fields, dropped: Set<string>): OfferedTools {
  const offered = new OfferedTools(dropped);
  for (const [at, value] of listOf(body.tools, 'tools').entries()) {
    const path = `tools[${at}]`;
    const tool = requireFields(value, path);
    if (tool.type === 'function') {
      const definition = requireFields(tool.function, `${path}.function`);
      offered.addFunction(definition, definition.parameters, `${path}.function`);
    } else if (tool.type === 'custom')
      offered.addFreeText(requireFields(tool.custom, `${path}.custom`), `${path}.custom`);
    else offered.drop(requireName(tool.type, `${path}.type`));
  }
  return offered;
}

/** Names the fields that change an answer and that the policy does not get. */
function dropFields(body: Fields, dropped: Set<string>): void {
  for (const name of ['functions', 'response_format', 'stop', 'logprobs', 'audio'])
    if (body[name] !== undefined && body[name] !== null && body[name] !== false) dropped.add(name);
  const choice = body.tool_choice ?? 'auto';
  if (choice !== 'auto' && choice !== 'none') dropped.add('tool_choice');
  if (body.parallel_tool_calls === false && listOf(body.tools, 'tools').length > 0)
    dropped.add('parallel_tool_calls');
  if (typeof body.n === 'number' && body.n !== 1) throw new BadRequest('n: expected 1');
}

function read(value: unknown): AgentRequest {
  const body = requireBody(value);
  const dropped = new Set<string>();
  const messages = listOf(body.messages, 'messages').map((message, at) =>
    readMessage(message, `messages[${at}]`, dropped),
  );
  if (messages.length === 0) throw new BadRequest('messages: expected at least one');
  const { tools, shapes } = readTools(body, dropped);
  dropFields(body, dropped);
  const options = body.stream_options ?? {};
  return {
    dialect: 'chat',
    stream: body.stream === true,
    model: requireName(body.model, 'model'),
    messages,
    answers: new Map(),
    tools,
    shapes,
    callsAllowed: body.tool_choice !== 'none',
    maxTokens: tokensOf(body.max_completion_tokens ?? body.max_tokens, 'max_tokens'),
    streamUsage: requireFields(options, 'stream_options').include_usage === true,
    dropped: namesOf(dropped),
  };
}

function wireCall(request: AgentRequest, call: Call) {
  const { kind, name } = shapeOf(request.shapes, call);
  return kind === 'custom' ? { id: call.id, type: kind, custom: { name, input: freeTextOf(call) } } : call;
}

const wireUsage = ({ usage: { prompt_tokens, completion_tokens } }: AgentAnswer) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
});

/** The time of creation is constant, so that an answer which is given twice has the same bytes. */
const head = (object: string, { model }: AgentRequest, id: string) => ({
  id: `chatcmpl-${id}`,
  object,
  created: 0,
  model,
});

function whole(request: AgentRequest, answer: AgentAnswer): unknown {
  const { content, reasoning_content, tool_calls } = answer.message;
  const calls = tool_calls?.map((call) => wireCall(request, call)) ?? [];
  const message = {
    role: 'assistant',
    content: content || (calls.length > 0 ? null : ''),
    refusal: null,
    ...(reasoning_content ? { reasoning_content } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
  return {
    ...head('chat.completion', request, answer.id),
    choices: [{ index: 0, message, logprobs: null, finish_reason: answer.finish }],
    usage: wireUsage(answer),
  };
}

function chunk(
  request: AgentRequest,
  id: string,
  delta: object,
  finish_reason: string | null = null,
): string {
  return data({
    ...head('chat.completion.chunk', request, id),
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  });
}

function events(request: AgentRequest, answer: AgentAnswer): string {
  const { content, reasoning_content, tool_calls } = answer.message;
  const deltas: object[] = [];
  if (reasoning_content) deltas.push({ reasoning_content });
  if (content) deltas.push({ content });
  for (const [index, call] of (tool_calls ?? []).entries())
    deltas.push({ tool_calls: [{ index, ...wireCall(request, call) }] });
  const usage = {
    ...head('chat.completion.chunk', request, answer.id),
    choices: [],
    usage: wireUsage(answer),
  };
  return [
    ...deltas.map((delta) => chunk(request, answer.id, delta)),
    chunk(request, answer.id, {}, answer.finish),
    ...(request.streamUsage ? [data(usage)] : []),
    'data: [DONE]\n\n',
  ].join('');
}

export const CHAT: DialectForm = {
  read,
  whole,
  begin: (request, id) => chunk(request, id, { role: 'assistant', content: '' }),
  alive: (request, id) => chunk(request, id, {}),
  events,
  refusal: (why, message) => ({ error: openaiError(why, message) }),
  refusedStream: (_request, _id, why, message) =>
    `${data({ error: openaiError(why, message) })}data: [DONE]\n\n`,
};
