/** Parses requests of the OpenAI interface by hand, so that a body of 176 messages is checked in microseconds. */

import { createHash } from 'node:crypto';
import type { ChatMessage } from './template.ts';
import type { ToolOffer } from './turntext.ts';
import type { Wanted } from './wire.ts';

/** Becomes HTTP 400 in vLLM's wording. */
export class BadRequest extends Error {
  override readonly name = 'BadRequest';
  readonly param: string | null;
  constructor(message: string, param: string | null = null) {
    super(message);
    this.param = param;
  }
}

export type Asking = {
  model: string | null;
  maxTokens: number | null;
  wanted: Wanted;
  stream: boolean;
  withUsage: boolean;
};

/** `pictures`: the SHA-256 of each picture of its messages. */
export type ChatRequest = Asking & { messages: ChatMessage[]; tools: ToolOffer[]; pictures: string[] };
export type CompletionRequest = Asking & { prompt: string | number[] };

type Body = Record<string, unknown>;

/** @throws BadRequest when the body is not an object or its messages are invalid */
export function readChatRequest(value: unknown): ChatRequest {
  const body = objectOf(value);
  const { messages, tools } = body;
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new BadRequest('messages: a list that is not empty is required', 'messages');
  }
  const pictures: string[] = [];
  for (const [i, message] of messages.entries()) readMessage(message, i, pictures);
  const offered = Array.isArray(tools) && body.tool_choice !== 'none' ? (tools as ToolOffer[]) : [];
  return { ...readAsking(body), messages: messages as ChatMessage[], tools: offered, pictures };
}

/** @throws BadRequest when the prompt is neither a text nor a list of ids */
export function readCompletionRequest(value: unknown): CompletionRequest {
  const body = objectOf(value);
  const prompt = body.prompt;
  const isIds = Array.isArray(prompt) && prompt.every((id) => Number.isInteger(id) && id >= 0);
  if (typeof prompt !== 'string' && !(isIds && prompt.length > 0)) {
    throw new BadRequest('prompt: a text or a list of token ids is required', 'prompt');
  }
  return { ...readAsking(body), prompt };
}

/** SGLang's text completions accept `max_tokens` as a number or absent, and absent means 16. Throws BadRequest. */
export function needsNumber(value: unknown): void {
  const { max_tokens: most } = objectOf(value);
  if (most === null) throw new BadRequest('body.max_tokens: Input should be a valid integer', 'max_tokens');
}

export function objectOf(value: unknown): Body {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Body;
  throw new BadRequest('the body is not a JSON object');
}

/** Joins the parts of a content list into one text, in place. A picture becomes `<image>`, and its hash is added to `pictures`. */
function readMessage(message: unknown, index: number, pictures: string[]): void {
  const at = `messages[${index}]`;
  if (typeof message !== 'object' || message === null) throw new BadRequest(`${at} is not an object`, at);
  const { role, content, tool_calls: calls } = message as Body;
  if (typeof role !== 'string') throw new BadRequest(`${at} has no role`, at);
  if (Array.isArray(content)) {
    (message as Body).content = content.map((part) => readPart(part, `${at}.content`, pictures)).join('');
  } else if (content !== undefined && content !== null && typeof content !== 'string') {
    throw new BadRequest(`${at}.content is not a text`, at);
  }
  if (role !== 'assistant' || !Array.isArray(calls)) return;
  for (const [i, call] of calls.entries()) readCall(call, `${at}.tool_calls[${i}]`);
}

function readPart(part: unknown, at: string, pictures: string[]): string {
  const { type, text, image_url: image } = objectOf(part) as { image_url?: { url?: unknown } } & Body;
  if (type !== 'image_url') return String(text ?? '');
  const [, bytes] =
    /^data:image\/(?:png|jpeg|gif|webp);base64,([A-Za-z0-9+/]+=*)$/.exec(String(image?.url)) ?? [];
  if (bytes === undefined) throw new BadRequest(`${at}: cannot identify image file`, at);
  pictures.push(createHash('sha256').update(Buffer.from(bytes, 'base64')).digest('hex'));
  return '<image>';
}

function readCall(call: { function?: { name?: unknown; arguments?: unknown } } | null, at: string): void {
  const { name, arguments: args } = call?.function ?? {};
  if (typeof name !== 'string' || typeof args !== 'string') {
    throw new BadRequest(`${at} needs a function with name and arguments`, at);
  }
}

function readAsking(body: Body): Asking {
  const most = body.max_completion_tokens ?? body.max_tokens ?? null;
  if (most !== null && !(typeof most === 'number' && Number.isInteger(most) && most >= 1)) {
    throw new BadRequest(`max_tokens must be at least 1, got ${String(most)}.`, 'max_tokens');
  }
  const options = body.stream_options as { include_usage?: unknown } | null | undefined;
  return {
    model: typeof body.model === 'string' ? body.model : null,
    maxTokens: most,
    wanted: {
      tokenIds: body.return_token_ids === true,
      logprobs: body.logprobs === true || typeof body.logprobs === 'number',
      asTokenIds: body.return_tokens_as_token_ids === true,
    },
    stream: body.stream === true,
    withUsage: options?.include_usage === true,
  };
}
