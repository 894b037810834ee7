/** Interprets a refusal (HTTP 400, 413, 422) of a length or a sampling setting, by the messages of current servers. */
import { SAMPLING_KEYS, type SamplingKey } from '@swefarm/shared';

/**
 * Prompt and requested answer exceed the context. `limit`: maximum tokens of both together; `room`: tokens left for an answer. Null if the
 * server gives no exact number.
 */
export type Overflow = { limit: number | null; room: number | null };

/** Overflow messages of vLLM, SGLang, OpenAI, TGI and their proxies. */
const OVERFLOW = [
  /maximum (context|model|sequence|input) length/i,
  /context[ _](length|window)/i,
  /max_model_len|max_seq_len|max_total_tokens/i,
  /(prompt|input|request)[^.]{0,60} (is|are) (too long|longer than)/i,
  /input tokens[^.]{0,60} exceed/i,
  /input length[^.]{0,60} exceeds? the maximum/i,
  /max_(completion_)?tokens\b[^.]{0,60} too large/i,
];

/** Parses an overflow message; null for any other refusal. `code`: the error code that OpenAI sends with the message. */
export function parseOverflow(text: string, code: unknown = null): Overflow | null {
  const shown = text.slice(0, 2000);
  if (code !== 'context_length_exceeded' && !OVERFLOW.some((pattern) => pattern.test(shown))) return null;
  return { limit: limitIn(shown), room: roomIn(shown) };
}

/** Patterns whose groups are the length of the context and the length of the prompt. */
const COUNTED: readonly RegExp[] = [
  // SGLang: … maximum context length of 4096 tokens. You requested a total of 5000 tokens: 1000 tokens from the input messages and …
  /maximum context length of (\d+) tokens.{0,80}?(\d+) tokens from the input/is,
  // vLLM to 0.9, OpenAI: maximum context length is 4096 tokens. … requested 5000 tokens (1000 in the messages, 4000 in the completion)
  /maximum context length is (\d+) tokens.{0,80}?\((\d+) (?:tokens )?in the (?:messages|prompt|input)/is,
  // vLLM 0.10 to 0.15: … is too large: 4000. This model's maximum context length is 4096 tokens and your request has 1000 input tokens
  /maximum context length is (\d+) tokens and your request has (\d+) input tokens/i,
];
/**
 * Message of vLLM since 0.16, which truncates a long text before it counts tokens: N of "You passed N input tokens" may be less than the
 * prompt. N is exact unless it is the maximum input length plus one.
 */
const PASSED =
  /You passed (\d+) input tokens and requested \d+ output tokens.{0,80}?context length is only (\d+) tokens, resulting in a maximum input length of (\d+)/is;

function roomIn(text: string): number | null {
  for (const pattern of COUNTED) {
    const found = pattern.exec(text);
    if (found) return Number(found[1]) - Number(found[2]);
  }
  const [, passed, limit, most] = (PASSED.exec(text) ?? []).map(Number);
  if (passed === undefined || limit === undefined || most === undefined || passed === most + 1) return null;
  return limit - passed;
}

/** Matches the length of the context in all these messages. */
const LIMIT =
  /(?:context length (?:is only|is|of)|context length \(|max_model_len=(?:max_total_tokens=)?|max_total_tokens=)\s?(\d+)/i;

function limitIn(text: string): number | null {
  const [, limit] = LIMIT.exec(text) ?? [];
  return limit === undefined ? null : Number(limit);
}

/** Messages of OpenAI, pydantic and proxies about an unknown field. */
const UNKNOWN_FIELD =
  /unknown|unrecognized|unrecognised|unexpected|unsupported|not supported|not permitted|not allowed|extra inputs|extra fields|extra_forbidden|additional propert/i;

/** Returns the sampling key that a refusal names as unknown; null if there is none. */
export function refusedSamplingKey(text: string): SamplingKey | null {
  const shown = text.slice(0, 2000);
  if (!UNKNOWN_FIELD.test(shown)) return null;
  return SAMPLING_KEYS.find((key) => new RegExp(`\\b${key}\\b`).test(shown)) ?? null;
}

export const samplingKeyRemedy = (key: SamplingKey): string =>
  `the endpoint does not take "${key}": training (--require-tokens) always sends it, because a server fills in its own where it is left out; use one that takes it (vLLM, SGLang), or run without --require-tokens and without --${key.replaceAll('_', '-')}`;
