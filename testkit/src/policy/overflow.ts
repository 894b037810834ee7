/** The errors by which servers report that prompt and answer do not fit into the context, in the wording of each server. */
import { BadRequest } from './request.ts';

/** `vllm-0.9`: the wording that vLLM had for years and that many proxies still use. */
export type Dialect = 'vllm-0.9' | 'vllm' | 'sglang' | 'nemo-rl';

/** Tokens of the context, of the prompt, and of the requested answer; null: as many as fit. */
export type Sizes = { limit: number; prompt: number; most: number | null };

/** Returns the refusal; null: the request fits or is made to fit. `counted`: the prompt has ids, which a server counts completely. */
export function refusalOf(dialect: Dialect, sizes: Sizes, counted: boolean): BadRequest | null {
  const { limit, prompt, most } = sizes;
  if (prompt + (most ?? 1) <= limit) return null;
  switch (dialect) {
    case 'vllm-0.9':
      return spokenOf(sizes);
    case 'vllm':
      return passed(limit, prompt, most ?? 0, counted);
    case 'nemo-rl':
      // This server lowers the requested number itself, as long as there is room.
      return prompt < limit ? null : passed(limit, prompt, 0, counted);
    case 'sglang':
      if (prompt >= limit)
        return new BadRequest(
          `The input (${prompt} tokens) is longer than the model's context length (${limit} tokens).`,
        );
      // Without a number this server uses all remaining room.
      if (most === null) return null;
      return new BadRequest(
        `Requested token count exceeds the model's maximum context length of ${limit} tokens. You requested a total of ` +
          `${prompt + most} tokens: ${prompt} tokens from the input messages and ${most} tokens for the completion. Please ` +
          'reduce the number of tokens in the input messages or the completion to fit within the limit.',
      );
  }
}

/** The server truncates a text after the first token that does not fit, and reports the truncated length. */
function passed(limit: number, prompt: number, most: number, counted: boolean): BadRequest {
  if (most > limit)
    return new BadRequest(
      `max_tokens=${most}cannot be greater than max_model_len=max_total_tokens=${limit}. Please request fewer output tokens. (parameter=max_tokens, value=${most})`,
      'max_tokens',
    );
  const room = limit - most;
  const count = counted ? prompt : Math.min(prompt, room + 1);
  return new BadRequest(
    `You passed ${count} input tokens and requested ${most} output tokens. However, the model's context length is only ` +
      `${limit} tokens, resulting in a maximum input length of ${room} tokens. Please reduce the length of the input prompt. ` +
      `(parameter=input_tokens, value=${count})`,
    'input_tokens',
  );
}

export function spokenOf({ limit, prompt, most }: Sizes): BadRequest {
  const asked = most ?? 1;
  return new BadRequest(
    `This model's maximum context length is ${limit} tokens. However, you requested ${prompt + asked} tokens ` +
      `(${prompt} in the messages, ${asked} in the completion). Please reduce the length of the messages or completion.`,
    'input_tokens',
  );
}
