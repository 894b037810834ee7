import { expect, test } from 'vitest';
import { parseOverflow, refusedSamplingKey } from './refusal.ts';

/** Messages of current servers, with the context length that they name and the tokens left for an answer. */
test.each<[string, string, number | null, number | null]>([
  [
    'vLLM, the answer alone is too large (the space is missing there too)',
    'max_tokens=40000cannot be greater than max_model_len=max_total_tokens=32768. Please request fewer output tokens. (parameter=max_tokens, value=40000)',
    32768,
    null,
  ],
  [
    'vLLM, a text is counted only until it does not fit',
    "You passed 769 input tokens and requested 32000 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 768 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=769)",
    32768,
    null,
  ],
  [
    'vLLM, a prompt of ids is counted whole',
    "You passed 1500 input tokens and requested 32000 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 768 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=1500)",
    32768,
    31268,
  ],
  [
    'vLLM, by characters',
    "You passed 900000 input characters and requested 10 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 32758 tokens (at most 419302 characters). Please reduce the length of the input prompt.",
    32768,
    null,
  ],
  [
    'vLLM 0.11',
    "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 8192 tokens and your request has 4000 input tokens (5000 > 8192 - 4000).",
    8192,
    4192,
  ],
  [
    'vLLM 0.14, at least',
    "This model's maximum context length is 102400 tokens. However, you requested 65536 output tokens and your prompt contains at least 36865 input tokens, for a total of at least 102401 tokens.",
    102400,
    null,
  ],
  [
    'vLLM to 0.9',
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
    8192,
    3192,
  ],
  [
    'vLLM, no limit told',
    'The decoder prompt (length 9000) is longer than the maximum model length of 8192.',
    null,
    null,
  ],
  [
    'SGLang, prompt and answer',
    "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 33500 tokens: 1500 tokens from the input messages and 32000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
    32768,
    31268,
  ],
  [
    'SGLang, the prompt alone',
    "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    8192,
    null,
  ],
  [
    'SGLang, in its scheduler',
    'Input length (9000 tokens) exceeds the maximum allowed length (8186 tokens). Use a shorter input or enable --allow-auto-truncate.',
    null,
    null,
  ],
  [
    'NeMo RL, which passes on what vLLM says',
    "You passed 32769 input tokens and requested 0 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 32768 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=32769)",
    32768,
    null,
  ],
  [
    'OpenAI',
    'max_tokens is too large: 40000. This model supports at most 16384 completion tokens.',
    null,
    null,
  ],
  ['plain text', 'prompt is too long', null, null],
])('%s', (_, text, limit, room) => {
  expect(parseOverflow(text)).toEqual({ limit, room });
  expect(refusedSamplingKey(text)).toBeNull();
});

test('the error code identifies an overflow, and other refusals are none', () => {
  expect(parseOverflow('Your input is large.', 'context_length_exceeded')).toEqual({
    limit: null,
    room: null,
  });
  for (const text of [
    'temperature must be non-negative',
    'max_tokens must be at least 1, got 0.',
    'Invalid JSON',
  ])
    expect(parseOverflow(text)).toBeNull();
});

test.each([
  ['OpenAI', 'Unrecognized request argument supplied: top_k', 'top_k'],
  [
    'pydantic',
    '[{"type":"extra_forbidden","loc":["body","min_p"],"msg":"Extra inputs are not permitted"}]',
    'min_p',
  ],
  [
    'a proxy',
    "UnsupportedParamsError: openai does not support parameters: {'repetition_penalty': 1.0}, unsupported",
    'repetition_penalty',
  ],
  ['another field', 'Unrecognized request argument supplied: return_token_ids', null],
  ['a bad value', 'top_k must be -1 (disable), or at least 1, got 0.', null],
])('%s names the key that it does not know', (_, text, key) => {
  expect(refusedSamplingKey(text)).toBe(key);
  expect(parseOverflow(text)).toBeNull();
});
