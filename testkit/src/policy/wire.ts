/**
 * Answers on the wire, with the fields of vLLM 0.32. The JSON is concatenated by hand from cached prompt ids, so that an
 * answer of 300 KB costs only a copy.
 */

import { createHash } from 'node:crypto';
import type { Generation } from './generation.ts';
import type { Prompt } from './prompt.ts';
import { hash32 } from './random.ts';
import type { Piece, Tokenizer } from './tokenizer.ts';

/** Which optional fields the request asked for. */
export type Wanted = { tokenIds: boolean; logprobs: boolean; asTokenIds: boolean };

export type Answer = {
  id: string;
  created: number;
  model: string;
  wanted: Wanted;
  generation: Generation;
  /** Tokens of the prompt; ids are null when the server runs without tokens. */
  promptLength: number;
  prompt: Prompt | null;
  promptIds: string | null;
  completionLength: number;
  /** Null when the server runs without tokens. */
  tokenIds: string | null;
  logProbs: readonly string[] | null;
};

export const promptJson = (prompt: Prompt): string =>
  prompt.runs
    .filter((run) => run.json !== '')
    .map((run) => run.json)
    .join(',');

export function answerId(kind: 'chatcmpl' | 'cmpl', seed: string): string {
  return `${kind}-${hash32(seed).toString(16).padStart(8, '0')}${hash32(seed, 1).toString(16).padStart(8, '0')}`;
}

/** Returns the SHA-256 of all ids of a request and its answer, joined by commas; null without tokens. */
export function digestOf({ prompt, generation }: Pick<Answer, 'prompt' | 'generation'>): string | null {
  if (!prompt) return null;
  const text = [promptJson(prompt), generation.tokens.json].filter(Boolean).join(',');
  return createHash('sha256').update(text).digest('hex');
}

const list = (ids: string | null): string => (ids === null ? 'null' : `[${ids}]`);
const usageOf = ({ promptLength, completionLength }: Answer): string =>
  `{"prompt_tokens":${promptLength},"total_tokens":${promptLength + completionLength},"completion_tokens":${completionLength},"prompt_tokens_details":null}`;

/** The whole body of a chat completion. */
export function chatBody(answer: Answer, tokenizer: Tokenizer | null): string {
  const { text, tokens } = answer.generation;
  const message = JSON.stringify({
    role: 'assistant',
    content: text.content,
    refusal: null,
    annotations: null,
    audio: null,
    function_call: null,
    tool_calls: text.toolCalls.length > 0 ? text.toolCalls : undefined,
    reasoning: text.reasoning,
    reasoning_content: text.reasoning ?? undefined,
  });
  const logprobs = answer.wanted.logprobs && tokenizer ? chatLogprobs(answer, tokens.ids, tokenizer) : 'null';
  return (
    `{"id":"${answer.id}","object":"chat.completion","created":${answer.created},"model":${JSON.stringify(answer.model)},` +
    `"choices":[{"index":0,"message":${message},"logprobs":${logprobs},"finish_reason":"${text.finish}","stop_reason":null,` +
    `"token_ids":${list(answer.tokenIds)}}],"service_tier":null,"system_fingerprint":null,"usage":${usageOf(answer)},` +
    `"prompt_logprobs":null,"prompt_token_ids":${list(answer.promptIds)},"kv_transfer_params":null}`
  );
}

/** The whole body of a text completion, in which vLLM puts the prompt ids into the choice. */
export function completionBody(answer: Answer, tokenizer: Tokenizer, text: string): string {
  const { text: answerText, tokens } = answer.generation;
  const finish = answerText.finish === 'tool_calls' ? 'stop' : answerText.finish;
  const logprobs = answer.wanted.logprobs ? completionLogprobs(answer, tokens.ids, tokenizer) : 'null';
  return (
    `{"id":"${answer.id}","object":"text_completion","created":${answer.created},"model":${JSON.stringify(answer.model)},` +
    `"choices":[{"index":0,"text":${JSON.stringify(text)},"logprobs":${logprobs},"finish_reason":"${finish}","stop_reason":null,` +
    `"token_ids":${list(answer.tokenIds)},"prompt_logprobs":null,"prompt_token_ids":${list(answer.promptIds)}}],` +
    `"service_tier":null,"system_fingerprint":null,"usage":${usageOf(answer)},"kv_transfer_params":null}`
  );
}

/** Tokens per chunk; a real server sends one, or those of a few steps. */
export const CHUNK_TOKENS = 4;

/** Server-sent events of a streamed text completion, as vLLM sends them: the prompt's ids with the first chunk only. */
export function* completionEvents(
  answer: Answer,
  tokenizer: Tokenizer,
  withUsage: boolean,
): Generator<string> {
  const { text, tokens } = answer.generation;
  const open = `{"id":"${answer.id}","object":"text_completion","created":${answer.created},"model":${JSON.stringify(answer.model)}`;
  const finish = text.finish === 'tool_calls' ? 'stop' : text.finish;
  // The length of the text sent so far, and the first token whose text was not sent completely.
  let [told, from] = ['', 0];
  for (let at = 0; at === 0 || at < tokens.ids.length; at += CHUNK_TOKENS) {
    const ids = tokens.ids.subarray(at, at + CHUNK_TOKENS);
    const last = at + CHUNK_TOKENS >= tokens.ids.length;
    const logProbs = answer.logProbs?.slice(at, at + CHUNK_TOKENS) ?? null;
    const logprobs =
      answer.wanted.logprobs && logProbs
        ? completionLogprobs({ ...answer, logProbs }, ids, tokenizer)
        : 'null';
    // A character whose bytes are incomplete is held back, as servers do.
    const fresh = tokenizer.decode(tokens.ids.subarray(from, at + CHUNK_TOKENS));
    const isPartial = !last && fresh.endsWith('\ufffd');
    const delta = last ? text.raw.slice(told.length) : isPartial ? '' : fresh;
    if (!isPartial) from = at + CHUNK_TOKENS;
    told += delta;
    const tokenIds = answer.tokenIds === null ? 'null' : `[${ids.join(',')}]`;
    const prompt = at === 0 && answer.wanted.tokenIds ? `,"prompt_token_ids":${list(answer.promptIds)}` : '';
    yield `data: ${open},"choices":[{"index":0,"text":${JSON.stringify(delta)},"logprobs":${logprobs},"finish_reason":${last ? `"${finish}"` : 'null'},"stop_reason":null${prompt},"token_ids":${tokenIds}}]}\n\n`;
  }
  if (withUsage) yield `data: ${open},"choices":[],"usage":${usageOf(answer)}}\n\n`;
  yield 'data: [DONE]\n\n';
}

/** Server-sent events of a streamed chat completion: role, words, the end, and usage if requested. */
export function* chatEvents(
  answer: Answer,
  tokenizer: Tokenizer | null,
  withUsage: boolean,
): Generator<string> {
  const { text, tokens } = answer.generation;
  const open = `{"id":"${answer.id}","object":"chat.completion.chunk","created":${answer.created},"model":${JSON.stringify(answer.model)}`;
  const chunk = (choice: string, more = '') => `data: ${open},"choices":[${choice}]${more}}\n\n`;
  const ids = answer.tokenIds === null ? null : tokens.ids;
  yield chunk(
    '{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}',
    `,"prompt_token_ids":${list(answer.promptIds)}`,
  );
  // All ids go with the first words: servers guarantee that all ids arrive, but not in which chunk.
  const deltas = deltasOf(answer);
  for (const [i, delta] of deltas.entries()) {
    const logprobs =
      i === 0 && answer.wanted.logprobs && tokenizer ? chatLogprobs(answer, tokens.ids, tokenizer) : 'null';
    const tokenIds = i === 0 && ids ? `,"token_ids":${list(answer.tokenIds)}` : '';
    yield chunk(
      `{"index":0,"delta":${JSON.stringify(delta)},"logprobs":${logprobs},"finish_reason":null${tokenIds}}`,
    );
  }
  yield chunk(`{"index":0,"delta":{},"logprobs":null,"finish_reason":"${text.finish}","stop_reason":null}`);
  if (withUsage) yield `data: ${open},"choices":[],"usage":${usageOf(answer)}}\n\n`;
  yield 'data: [DONE]\n\n';
}

function deltasOf({ generation: { text } }: Answer): object[] {
  const deltas: object[] = [];
  if (text.reasoning !== null) deltas.push({ reasoning: text.reasoning, reasoning_content: text.reasoning });
  // Split at words, so that no character is split.
  for (const words of text.content?.match(/(?:\S*\s+){1,8}|\S+$/g) ?? []) deltas.push({ content: words });
  for (const [index, call] of text.toolCalls.entries()) deltas.push({ tool_calls: [{ index, ...call }] });
  return deltas.length > 0 ? deltas : [{ content: '' }];
}

function chatLogprobs({ logProbs, wanted }: Answer, ids: Int32Array, tokenizer: Tokenizer): string {
  const entries = (logProbs ?? []).map((logProb, i) => {
    const id = ids[i] ?? 0;
    return `${opening(tokenizer.piece(id), id, wanted.asTokenIds)}${logProb}${closing(tokenizer.piece(id))}`;
  });
  return `{"content":[${entries.join(',')}]}`;
}

const openings = new WeakMap<Piece, string>();
const closings = new WeakMap<Piece, string>();

function opening(piece: Piece, id: number, asTokenId: boolean): string {
  if (asTokenId) return `{"token":"token_id:${id}","logprob":`;
  const known = openings.get(piece) ?? `{"token":${JSON.stringify(piece.text)},"logprob":`;
  openings.set(piece, known);
  return known;
}

function closing(piece: Piece): string {
  const known = closings.get(piece) ?? `,"bytes":[${piece.bytes.join(',')}],"top_logprobs":[]}`;
  closings.set(piece, known);
  return known;
}

function completionLogprobs({ logProbs, wanted }: Answer, ids: Int32Array, tokenizer: Tokenizer): string {
  const texts: string[] = [];
  const offsets: number[] = [];
  let offset = 0;
  for (const id of ids.subarray(0, logProbs?.length ?? 0)) {
    const text = wanted.asTokenIds ? `token_id:${id}` : tokenizer.piece(id).text;
    texts.push(text);
    offsets.push(offset);
    offset += text.length;
  }
  return `{"text_offset":[${offsets}],"token_logprobs":[${logProbs ?? ''}],"tokens":${JSON.stringify(texts)},"top_logprobs":null}`;
}
