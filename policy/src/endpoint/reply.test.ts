/** Every form in which servers send tokens, each with the same answer. */

import { RolloutFailure } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { parseCompletion } from './completion.ts';
import { AnswerError } from './errors.ts';
import { parseReply } from './reply.ts';

const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const usage = { prompt_tokens: 3, completion_tokens: 2 };
const meta = {
  finish_reason: { type: 'stop', matched: 2 },
  prompt_tokens: 3,
  completion_tokens: 2,
  output_token_logprobs: [
    [-0.5, 7, null],
    [-0.25, 8, null],
  ],
};
const prompt_token_ids = [1, 2, 3];
const tokens = {
  generation_token_ids: Int32Array.of(7, 8),
  generation_log_probs: Float32Array.of(-0.5, -0.25),
  usage,
};

describe('chat completions', () => {
  const choice = { message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' };
  const content = [{ logprob: -0.5 }, { logprob: -0.25 }];
  const texts = { generation_token_ids: ['7', '8'], generation_log_probs: [-0.5, -0.25] };
  test.each<[string, unknown]>([
    ['vLLM', { choices: [{ ...choice, token_ids: [7, 8], logprobs: { content } }], prompt_token_ids, usage }],
    [
      'NeMo Gym, on the message, ids as texts',
      { choices: [{ ...choice, message: { ...choice.message, prompt_token_ids, ...texts } }], usage },
    ],
    ['SGLang', { choices: [{ ...choice, prompt_token_ids, meta_info: meta }], usage }],
  ])('%s', (_, body) => {
    expect(parseReply(bytes(body))).toEqual({
      message: { role: 'assistant', content: 'yes' },
      finish_reason: 'stop',
      prompt_token_ids: Int32Array.of(1, 2, 3),
      ...tokens,
    });
  });
});

test.each([
  [
    { prompt_tokens: 100.5, completion_tokens: 2 },
    { prompt_tokens: 101, completion_tokens: 2 },
  ],
  [{ prompt_tokens: 3, completion_tokens: -1 }, null],
  [{ prompt_tokens: 1e300, completion_tokens: 1 }, null],
  [{ prompt_tokens: '3', completion_tokens: 2 }, null],
  [{ prompt_tokens: 3 }, null],
  ['a lot', null],
])('usage %j is whole numbers or none: sums of it go into results', (reported, read) => {
  const choice = { message: { role: 'assistant', content: 'yes' } };
  expect(parseReply(bytes({ choices: [choice], usage: reported })).usage).toEqual(read);
  const text = { text: 'yes', token_ids: [7] };
  expect(parseCompletion(bytes({ choices: [text], usage: reported })).usage).toEqual(read);
});

describe('text completions', () => {
  const choice = { text: 'yes', finish_reason: 'stop' };
  const logprobs = { token_logprobs: [-0.5, -0.25] };
  test.each<[string, unknown, Int32Array | null]>([
    [
      'vLLM, and SGLang where it knows return_token_ids',
      { choices: [{ ...choice, token_ids: [7, 8], prompt_token_ids, logprobs }], usage },
      Int32Array.of(1, 2, 3),
    ],
    ['a router that keeps meta_info', { choices: [{ ...choice, meta_info: meta }], usage }, null],
    ['SGLang, natively', { text: 'yes', meta_info: meta }, null],
  ])('%s', (_, body, prompt) => {
    expect(parseCompletion(bytes(body))).toEqual({
      text: 'yes',
      finish_reason: 'stop',
      prompt_token_ids: prompt,
      ...tokens,
    });
  });
  test('refuses text that is no completion, an aborted answer, and an answer without ids', () => {
    expect(() => parseCompletion(bytes({ choices: [] }))).toThrow(AnswerError);
    expect(() => parseCompletion(Buffer.from('<html>'))).toThrow(AnswerError);
    const aborted = { text: '', meta_info: { ...meta, finish_reason: { type: 'abort' } } };
    expect(() => parseCompletion(bytes(aborted))).toThrow(/broke the answer off/);
    const silent = () => parseCompletion(bytes({ choices: [choice], usage }));
    expect(silent).toThrow(RolloutFailure);
    expect(silent).toThrow(/no token ids/);
  });
});
