/** An endpoint that samples from random logits and returns raw or processed log-probabilities. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export type SoftmaxOptions = {
  /** Distribution of the returned log-probabilities: before sampling, after the temperature alone (SGLang), or after all sampling. */
  logprobs: 'raw' | 'temperature' | 'processed';
  /** Standard deviation of the logits; 0: all tokens are equally likely. */
  spread: number;
  /** Added to one logit at each position; large: the model is certain. */
  certain?: number;
  /** Refuses temperatures other than 1, as NeMo RL's server does. */
  strict?: boolean;
  length?: number;
  /** Refuses to stream a chat with token ids, as SGLang does. */
  wholeChats?: boolean;
};

const VOCABULARY = 60;
const PROMPT = [7, 8, 9];

/** Returns a generator of pseudo-random numbers between 0 and 1. Equal seeds give equal numbers. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function logitsAfter(sequence: readonly number[], { spread, certain = 0 }: SoftmaxOptions): number[] {
  const random = generator(sequence.reduce((hash, id) => Math.imul(hash ^ id, 0x01000193), 0x811c9dc5));
  for (let i = 0; i < 5; i++) random();
  const normal = () => Math.sqrt(-2 * Math.log(random() + 1e-9)) * Math.cos(2 * Math.PI * random());
  return Array.from({ length: VOCABULARY }, (_, id) => normal() * spread + (id === 3 ? certain : 0));
}

function logSoftmax(logits: readonly number[]): number[] {
  const most = Math.max(...logits);
  const sum = logits.reduce((total, one) => total + Math.exp(one - most), 0);
  return logits.map((one) => one - most - Math.log(sum));
}

/** Returns the token whose cumulative probability reaches `at` (0 to 1). */
function drawn(logProbs: readonly number[], at: number): number {
  let left = at;
  for (const [id, logProb] of logProbs.entries()) {
    left -= Math.exp(logProb);
    if (left <= 0) return id;
  }
  return logProbs.indexOf(Math.max(...logProbs));
}

type Body = { temperature?: number; top_k?: number; max_tokens?: number; prompt?: number[] };

function sample(prompt: readonly number[], body: Body, options: SoftmaxOptions, random: () => number) {
  const { temperature = 1, top_k: k = -1 } = body;
  const sequence = [...prompt];
  return Array.from({ length: Math.min(body.max_tokens ?? 16, 40) }, () => {
    const logits = logitsAfter(sequence, options);
    const heated = logits.map((one) => one / temperature);
    const least = k > 0 ? (heated.toSorted((a, b) => b - a)[k - 1] ?? -Infinity) : -Infinity;
    const sampled = logSoftmax(heated.map((one) => (one < least ? -Infinity : one)));
    const returned = { raw: logSoftmax(logits), temperature: logSoftmax(heated), processed: sampled }[
      options.logprobs
    ];
    const id = drawn(sampled, random());
    sequence.push(id);
    const top = returned
      .map((logprob, token) => ({ token: `t${token}`, logprob: Math.max(logprob, -9999) }))
      .toSorted((a, b) => b.logprob - a.logprob)
      .slice(0, 5);
    return { id, logprob: returned[id] ?? 0, top };
  });
}

/** Starts the endpoint for the duration of a test. `bodies`: bodies of the requests for completions and chats. */
export async function startSoftmax(options: SoftmaxOptions) {
  const bodies: Record<string, unknown>[] = [];
  const random = generator(1);
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const send = (value: unknown, status = 200) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(value));
      };
      const path = request.url ?? '';
      if (path === '/v1/models') return send({ data: [{ id: 'm', max_model_len: options.length ?? 4096 }] });
      const body = JSON.parse(Buffer.concat(chunks).toString());
      if (path === '/tokenize') return send({ tokens: rendered(body) });
      if (path === '/detokenize') return send({ prompt: 'assistant\n' });
      bodies.push(body);
      if (options.strict && body.temperature !== 1)
        return send(
          { error: { message: 'request sampling matches neither the train sampling params' } },
          500,
        );
      if (options.wholeChats && body.stream && path === '/v1/chat/completions')
        return send(
          { error: { message: 'return_token_ids is not supported with streaming on /v1/chat/completions.' } },
          400,
        );
      send(answered(path, body, sample(body.prompt ?? PROMPT, body, options, random)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, bodies };
}

/** Renders each character of role and text as one token. Token 50 ends each message, and token 51 ends the prompt. */
function rendered({ messages }: { messages: { role: string; content: string | null }[] }): number[] {
  const of = (text: string) => [...text].map((char) => 10 + (char.charCodeAt(0) % 30));
  return [...messages.flatMap(({ role, content }) => [...of(role), ...of(content ?? ''), 50]), 51];
}

function answered(path: string, { prompt = PROMPT }: Body, positions: ReturnType<typeof sample>) {
  const usage = { prompt_tokens: prompt.length, completion_tokens: positions.length };
  const ids = { token_ids: positions.map(({ id }) => id), prompt_token_ids: prompt };
  if (path === '/v1/completions') {
    const logprobs = {
      tokens: positions.map(({ id }) => `t${id}`),
      token_logprobs: positions.map(({ logprob }) => logprob),
      top_logprobs: positions.map(({ top }) =>
        Object.fromEntries(top.map(({ token, logprob }) => [token, logprob])),
      ),
    };
    return { choices: [{ index: 0, text: 'words', finish_reason: 'length', logprobs, ...ids }], usage };
  }
  const content = positions.map(({ id, logprob, top }) => ({ token: `t${id}`, logprob, top_logprobs: top }));
  const message = { role: 'assistant', content: 'words' };
  return { choices: [{ index: 0, message, finish_reason: 'length', logprobs: { content }, ...ids }], usage };
}
