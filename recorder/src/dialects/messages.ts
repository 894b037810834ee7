/** Anthropic messages. */
import type { Message } from '@swefarm/shared';
import { tryParseJson } from '@swefarm/shared';
import { contentText, joined, partText } from './content.ts';
import {
  type AgentAnswer,
  type AgentRequest,
  BadRequest,
  type DialectForm,
  type Refused,
} from './dialect.ts';
import {
  answerIdOf,
  type Fields,
  isFields,
  listOf,
  namesOf,
  requireBody,
  requireFields,
  requireName,
  textOf,
  tokensOf,
} from './fields.ts';
import { type Call, functionCall, OfferedTools } from './offered.ts';
import { ERROR_TYPE, refusalText } from './refusal.ts';
import { namedEvent } from './sse.ts';

/** The client of Claude Code adds this text to the system prompt. It differs in each request. */
const BILLING = 'x-anthropic-billing-header';
/** The field in which Claude Code gives back an input that it cannot read. */
const UNREAD = '__unparsedToolInput';

type Reading = { messages: Message[]; answers: Map<number, string>; dropped: Set<string> };

const blocksOf = (content: unknown, path: string): unknown[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content, path);

/** Returns the text of a block of a kind that any message may have. */
function plainText(block: Fields, path: string, dropped: Set<string>): string {
  const text = partText(block, path, dropped);
  if (text !== null) return text;
  dropped.add(`part ${String(block.type)}`);
  return '';
}

function readSystem(value: unknown, dropped: Set<string>): Message[] {
  const texts = blocksOf(value, 'system').map((block, at) =>
    plainText(requireFields(block, `system[${at}]`), `system[${at}]`, dropped),
  );
  const content = joined(texts.filter((text) => !text.trimStart().startsWith(BILLING)));
  return content === '' ? [] : [{ role: 'system', content }];
}

function readInput(input: unknown): string {
  const unread = isFields(input) ? input[UNREAD] : undefined;
  if (isFields(unread) && typeof unread.raw === 'string') return unread.raw;
  return JSON.stringify(input ?? {});
}

function readAssistant(blocks: unknown[], path: string, { messages, answers, dropped }: Reading): void {
  const texts: string[] = [];
  const thoughts: string[] = [];
  const calls: Call[] = [];
  for (const [at, value] of blocks.entries()) {
    const where = `${path}[${at}]`;
    const block = requireFields(value, where);
    if (block.type === 'thinking') {
      thoughts.push(textOf(block.thinking, `${where}.thinking`));
      const id = answerIdOf(block.signature);
      if (id !== null) answers.set(messages.length, id);
    } else if (block.type === 'tool_use')
      calls.push(
        functionCall(
          requireName(block.id, `${where}.id`),
          requireName(block.name, `${where}.name`),
          readInput(block.input),
        ),
      );
    else texts.push(plainText(block, where, dropped));
  }
  const content = joined(texts);
  const reasoning = joined(thoughts);
  messages.push({
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  });
}

/** Reads a message of the user: the results of calls become messages of their own, and the texts between them one message each. */
function readUser(blocks: unknown[], path: string, { messages, dropped }: Reading): void {
  let texts: string[] = [];
  const flush = (): void => {
    const content = joined(texts);
    if (content !== '') messages.push({ role: 'user', content });
    texts = [];
  };
  for (const [at, value] of blocks.entries()) {
    const where = `${path}[${at}]`;
    const block = requireFields(value, where);
    if (block.type === 'tool_result') {
      flush();
      const id = requireName(block.tool_use_id, `${where}.tool_use_id`);
      messages.push({
        role: 'tool',
        content: contentText(block.content, `${where}.content`, dropped),
        tool_call_id: id,
      });
    } else texts.push(plainText(block, where, dropped));
  }
  flush();
}

function readMessage(value: unknown, path: string, reading: Reading): void {
  const message = requireFields(value, path);
  const blocks = blocksOf(message.content, `${path}.content`);
  if (message.role === 'assistant') readAssistant(blocks, `${path}.content`, reading);
  else if (message.role === 'user') readUser(blocks, `${path}.content`, reading);
  else if (message.role === 'system')
    reading.messages.push({
      role: 'system',
      content: contentText(message.content, `${path}.content`, reading.dropped),
    });
  else throw new BadRequest(`${path}.role: expected user, assistant or system`);
}

function readTools(body: Fields, dropped: Set<string>): OfferedTools {
  const offered = new OfferedTools(dropped);
  for (const [at, value] of listOf(body.tools, 'tools').entries()) {
    const tool = requireFields(value, `tools[${at}]`);
    if ((tool.type ?? 'custom') === 'custom') offered.addFunction(tool, tool.input_schema, `tools[${at}]`);
    else offered.drop(requireName(tool.type, `tools[${at}].type`));
  }
  return offered;
}

/** Names the fields that change an answer and that the policy does not get. Returns whether calls are allowed. */
function dropFields(body: Fields, last: Message | undefined, dropped: Set<string>): boolean {
  for (const name of ['mcp_servers', 'container', 'stop_sequences'])
    if (body[name] !== undefined && body[name] !== null) dropped.add(name);
  if (isFields(body.output_config) && body.output_config.format) dropped.add('output_config.format');
  if (last?.role === 'assistant') dropped.add('prefill');
  const choice = body.tool_choice === undefined ? {} : requireFields(body.tool_choice, 'tool_choice');
  const type = choice.type ?? 'auto';
  if (type !== 'auto' && type !== 'none') dropped.add('tool_choice');
  if (choice.disable_parallel_tool_use === true) dropped.add('parallel_tool_calls');
  return type !== 'none';
}

function read(value: unknown): AgentRequest {
  const body = requireBody(value);
  const dropped = new Set<string>();
  const reading: Reading = { messages: readSystem(body.system, dropped), answers: new Map(), dropped };
  for (const [at, message] of listOf(body.messages, 'messages').entries())
    readMessage(message, `messages[${at}]`, reading);
  const { messages, answers } = reading;
  if (messages.length === 0) throw new BadRequest('messages: expected at least one');
  const { tools, shapes } = readTools(body, dropped);
  const callsAllowed = dropFields(body, messages.at(-1), dropped);
  return {
    dialect: 'messages',
    stream: body.stream === true,
    model: requireName(body.model, 'model'),
    messages,
    answers,
    tools,
    shapes,
    callsAllowed,
    maxTokens: tokensOf(body.max_tokens, 'max_tokens'),
    streamUsage: true,
    dropped: namesOf(dropped),
  };
}

/** An input must be an object. Other arguments are given in the form in which Claude Code gives them back. */
function inputOf({ function: { arguments: args } }: Call): Fields {
  const value = tryParseJson(args);
  return isFields(value) ? value : { [UNREAD]: { raw: args } };
}

/** The blocks of an answer, each with its start and its differences in a stream. An answer without a block has an empty text. */
function blocksOfAnswer({ id, message: { content, reasoning_content, tool_calls } }: AgentAnswer) {
  const blocks: { block: object; start: object; deltas: object[] }[] = [];
  if (reasoning_content)
    blocks.push({
      block: { type: 'thinking', thinking: reasoning_content, signature: id },
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: [
        { type: 'thinking_delta', thinking: reasoning_content },
        { type: 'signature_delta', signature: id },
      ],
    });
  if (content || !tool_calls?.length)
    blocks.push({
      block: { type: 'text', text: content ?? '' },
      start: { type: 'text', text: '' },
      deltas: content ? [{ type: 'text_delta', text: content }] : [],
    });
  for (const call of tool_calls ?? []) {
    const use = { type: 'tool_use', id: call.id, name: call.function.name };
    blocks.push({
      block: { ...use, input: inputOf(call) },
      start: { ...use, input: {} },
      deltas: [{ type: 'input_json_delta', partial_json: call.function.arguments }],
    });
  }
  return blocks;
}

const STOP_REASON = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' } as const;

const head = ({ model }: AgentRequest, { id, usage }: AgentAnswer) => ({
  id: `msg_${id}`,
  type: 'message',
  role: 'assistant',
  model,
  usage: {
    input_tokens: usage.prompt_tokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: usage.completion_tokens,
  },
});

const whole = (request: AgentRequest, answer: AgentAnswer): unknown => ({
  ...head(request, answer),
  content: blocksOfAnswer(answer).map(({ block }) => block),
  stop_reason: STOP_REASON[answer.finish],
  stop_sequence: null,
});

function events(request: AgentRequest, answer: AgentAnswer): string {
  const message = { ...head(request, answer), content: [], stop_reason: null, stop_sequence: null };
  const blocks = blocksOfAnswer(answer).map(({ start, deltas }, index) =>
    [
      namedEvent({ type: 'content_block_start', index, content_block: start }),
      ...deltas.map((delta) => namedEvent({ type: 'content_block_delta', index, delta })),
      namedEvent({ type: 'content_block_stop', index }),
    ].join(''),
  );
  return [
    namedEvent({ type: 'message_start', message }),
    ...blocks,
    namedEvent({
      type: 'message_delta',
      delta: { stop_reason: STOP_REASON[answer.finish], stop_sequence: null },
      usage: message.usage,
    }),
    namedEvent({ type: 'message_stop' }),
  ].join('');
}

const PING = namedEvent({ type: 'ping' });

const refusal = (why: Refused, message: string) => ({
  type: 'error',
  error: { type: ERROR_TYPE[why], message: refusalText(why, message, 'prompt is too long') },
});

export const MESSAGES: DialectForm = {
  read,
  whole,
  // `message_start` has the number of tokens of the prompt, which is known with the answer.
  begin: () => PING,
  alive: () => PING,
  events,
  refusal,
  refusedStream: (_request, _id, why, message) => namedEvent(refusal(why, message)),
};
