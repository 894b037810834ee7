/** The sampling of requests that a turn client sends to a fake endpoint. */

import type { Message } from '@swefarm/shared';
import { PolicyConfig } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { ContextOverflowError } from './endpoint/errors.ts';
import type { Post } from './endpoint/post.ts';
import { parseOverflow } from './endpoint/refusal.ts';
import { openTurnClient } from './openturnclient.ts';

const PROMPT = 10;
const START: Message[] = [{ role: 'user', content: 'hi' }];
const refusal = (text: string) => new ContextOverflowError(text, parseOverflow(text) ?? undefined);

/** Throws each of these errors once, in order; then answers every request. */
function endpoint(...answers: Error[]) {
  const bodies: Record<string, unknown>[] = [];
  const post: Post = async (route, pieces) => {
    const body = JSON.parse(pieces.map((piece) => piece.toString()).join(''));
    if (route === 'tokenize')
      return Buffer.from(JSON.stringify({ tokens: Array.from({ length: PROMPT }, () => 1) }));
    if (route === 'detokenize') return Buffer.from(JSON.stringify({ prompt: 'assistant\n' }));
    bodies.push(body);
    const refused = answers.shift();
    if (refused) throw refused;
    const usage = { prompt_tokens: PROMPT, completion_tokens: 1 };
    const message = { role: 'assistant', content: 'ok' };
    const choice = { index: 0, message, text: 'ok', finish_reason: 'stop', token_ids: [2] };
    return Buffer.from(JSON.stringify({ choices: [choice], usage }));
  };
  return { bodies, post };
}

type Limits = { length?: number; contextLimit?: number; sequenceBudget?: number };

async function ask(config: object, { post, length, ...of }: Limits & { post: Post }) {
  const policy = PolicyConfig.parse({ urls: ['http://a/v1'], model: 'm', ...config });
  const modelLength = async () => length ?? null;
  const limits = { contextLimit: null, sequenceBudget: null, ...of, modelLength };
  const speaker = await openTurnClient(policy, { rolloutId: 'run.i.0', limits });
  return await speaker.ask(START, [], post);
}

const TOKEN_IN = { token_mode: 'token-in' };
describe('token-in knows its prompt', () => {
  test.each<[string, object, Limits, number | null]>([
    ['what is wanted, where there is room', { max_tokens: 30 }, { length: 100 }, 30],
    ['what is left of the server’s length', { max_tokens: 300 }, { length: 100 }, 90],
    ['what is left of the run’s own limit', { max_tokens: 300 }, { length: 100, contextLimit: 50 }, 40],
    ['all that is left, where nothing is wanted', {}, { length: 100 }, 90],
    ['what is left of the budget after the first prompt', {}, { length: 100, sequenceBudget: 20 }, 20],
    ['one token', {}, { contextLimit: 11 }, 1],
    ['a null only where nobody tells', {}, {}, null],
  ])('%s', async (_, sampling, limits, sent) => {
    const { bodies, post } = endpoint();
    const reply = await ask({ ...TOKEN_IN, sampling }, { post, ...limits });
    expect(bodies[0]).toHaveProperty('max_tokens', sent);
    expect(reply.asked).toEqual({ max_tokens: sent });
  });

  test('a prompt that leaves no room for a token throws before a request is sent', async () => {
    const { bodies, post } = endpoint();
    await expect(ask(TOKEN_IN, { post, length: PROMPT })).rejects.toMatchObject({
      ...{ kind: 'no_room', of: 'endpoint' },
    });
    expect(bodies).toEqual([]);
  });

  test('a server that reserves tokens gets one more request with the limit that it reports', async () => {
    const { bodies, post } = endpoint(
      refusal(
        "Requested token count exceeds the model's maximum context length of 100 tokens. You requested a total of 105 tokens: 15 tokens from the input messages and 90 tokens for the completion.",
      ),
    );
    const reply = await ask(TOKEN_IN, { post, length: 100 });
    expect(bodies.map((body) => body.max_tokens)).toEqual([90, 85]);
    expect(reply.asked).toEqual({ max_tokens: 85 });
  });

  test('the length is taken from the refusal when the server does not list it', async () => {
    const { bodies, post } = endpoint(
      refusal('max_tokens=400cannot be greater than max_model_len=max_total_tokens=100.'),
    );
    await ask({ ...TOKEN_IN, sampling: { max_tokens: 400 } }, { post });
    expect(bodies.map((body) => body.max_tokens)).toEqual([400, 90]);
  });
});

describe('in chat the server counts', () => {
  const sampling = { max_tokens: 400 };
  const EXACT =
    "'max_tokens' is too large: 400. This model's maximum context length is 100 tokens and your request has 30 input tokens";
  const CUT_OFF =
    "You passed 31 input tokens and requested 400 output tokens. However, the model's context length is only 430 tokens, resulting in a maximum input length of 30 tokens.";

  test.each([
    ['the number that it tells', EXACT, 70],
    ['all there is, where it tells none', CUT_OFF, undefined],
  ])('once more with %s', async (_, text, second) => {
    const { bodies, post } = endpoint(refusal(text));
    const reply = await ask({ sampling }, { post });
    expect(bodies.map((body) => body.max_tokens)).toEqual([400, second]);
    expect(reply.asked).toEqual({ max_tokens: second ?? null });
  });
  test.each([
    ['it still does not fit', [refusal(CUT_OFF), refusal(CUT_OFF)], 2, sampling],
    ['no room is left', [refusal(EXACT.replace('30 input', '100 input'))], 1, sampling],
    ['nothing was asked for', [refusal(CUT_OFF)], 1, {}],
  ])('%s: that is the end', async (_, refusals, requests, wanted) => {
    const { bodies, post } = endpoint(...refusals);
    await expect(ask({ sampling: wanted }, { post })).rejects.toThrow(ContextOverflowError);
    expect(bodies).toHaveLength(requests);
  });
});

test("a request has the turn's own seed, and the reply reports the seed", async () => {
  const { bodies, post } = endpoint();
  const reply = await ask({ sampling: { seed: 5 } }, { post });
  expect(reply.asked.seed).toBe(bodies[0]?.seed);
  expect(reply.asked.seed).not.toBe(5);
});

test.each([TOKEN_IN, { token_mode: 'echo' }, { token_mode: 'text' }])(
  'training sends every key that changes the distribution, %j',
  async (mode) => {
    const { bodies, post } = endpoint();
    await ask({ ...mode, require_tokens: true, extra_body: { top_k: null } }, { post, length: 100 });
    expect(bodies[0]).toMatchObject({
      temperature: 1,
      top_p: 1,
      top_k: -1,
      min_p: 0,
      repetition_penalty: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
    });
  },
);
