/** How servers say that prompt and answer do not fit into the context: each in its own present words. */
import { BadRequest } from './request.ts';

/** `vllm-0.9`: as it spoke for years, and as many proxies still do. */
export type Dialect = 'vllm-0.9' | 'vllm' | 'sglang' | 'nemo-rl';

/** What was asked for: tokens of the context, of the prompt, and of the answer; null: as many as fit. */
export type Sizes = { limit: number; prompt: number; most: number | null };

/** Null: it fits, or is made to fit. `counted`: the prompt came as ids, which nobody cuts off before counting. */
export function refusalOf(dialect: Dialect, sizes: Sizes, counted: boolean): BadRequest | null {
  const { limit, prompt, most } = sizes;
  if (prompt + (most ?? 1) <= limit) return null;
  switch (dialect) {
    case 'vllm-0.9':
      return spokenOf(sizes);
    case 'vllm':
      return passed(limit, prompt, most ?? 0, counted);
    case 'nemo-rl':
      // It lowers what is asked for by itself, as long as there is room.
      return prompt < limit ? null : passed(limit, prompt, 0, counted);
    case 'sglang':
      if (prompt >= limit)
        return new BadRequest(
          `The input (${prompt} tokens) is longer than the model's context length (${limit} tokens).`,
        );
      // Without a number it takes what is left.
      if (most === null) return null;
      return new BadRequest(
        `Requested token count exceeds the model's maximum context length of ${limit} tokens. You requested a total of ` +
          `${prompt + most} tokens: ${prompt} tokens from the input messages and ${most} tokens for the completion. Please ` +
          'reduce the number of tokens in the input messages or the completion to fit within the limit.',
      );
  }
}

/** A text is cut off at the first token that does not fit, and what is left is counted. */
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
