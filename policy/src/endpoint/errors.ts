/** Errors of an endpoint. The caller decides which errors to retry. */

import type { TokenLimit } from '@swefarm/shared';
import { APIConnectionError, APIError } from 'openai/error';
import type { Overflow } from './refusal.ts';

/** APIError is a refused request (it has `status`). APIConnectionError is a request without an answer (no `status`). */
export { APIConnectionError, APIError };

/** Thrown if prompt and answer exceed a token limit: the endpoint reports this, or the prompt alone fills the context. */
export class ContextOverflowError extends Error {
  override readonly name = 'ContextOverflowError';
  readonly overflow: Overflow;
  readonly of: TokenLimit;

  constructor(
    message: string,
    overflow: Overflow = { limit: null, room: null },
    of: TokenLimit = 'endpoint',
  ) {
    super(message);
    this.overflow = overflow;
    this.of = of;
  }
}

/** Thrown for an answer that cannot be used, or a prompt that cannot be built. */
export class AnswerError extends Error {
  override readonly name: string = 'AnswerError';
  /**
   * `garbage`: the answer violates the protocol. `broken_off`: the engine failed. `aborted`: the engine stopped the answer for another
   * reason. `cut_short`: the stream ended before the answer. `template`: the chat template cannot be rendered or continued. `no_room`: the
   * prompt fills the context.
   */
  readonly kind: 'garbage' | 'broken_off' | 'aborted' | 'cut_short' | 'template' | 'no_room';

  constructor(kind: AnswerError['kind'], message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
  }
}

export class PromptTooLongError extends AnswerError {
  override readonly name = 'PromptTooLongError';
  readonly of: TokenLimit;

  constructor(message: string, of: TokenLimit) {
    super('no_room', message);
    this.of = of;
  }
}

/**
 * Returns whether an error or one of its causes reports that a chat cannot be rendered: by the local template, or by the endpoint (HTTP
 * 400, 422). A retry of the same chat would fail again.
 */
export function isRefusal(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof AnswerError && at.kind === 'template') return true;
    if (at instanceof APIError && (at.status === 400 || at.status === 422)) return true;
  }
  return false;
}
