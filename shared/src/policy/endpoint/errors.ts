/** What an endpoint can say that is no answer, before anyone decides whether to ask again. */
/** The SDK's error of a refused request (`status`), or of one without an answer (no `status`). */
export { APIConnectionError, APIError } from 'openai/error';

import type { TokenLimit } from '../../records/trajectory.ts';
import type { Overflow } from './refusal.ts';

/** The endpoint's word that prompt and answer do not fit, in its own words. */
export class ContextOverflowError extends Error {
  override readonly name = 'OverflowSignal';
  readonly overflow: Overflow;
  /** Whose limit it is. */
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

export class AnswerError extends Error {
  override readonly name = 'WireFault';
  /**
   * `garbage`: not the protocol. `broken_off`: something went wrong in the engine. `aborted`: it stopped the answer for other reasons.
   * `cut_short`: the stream ended before the answer.
   * `template`: the model's chat template cannot be continued by appending. `no_room`: the prompt fills the context.
   */
  readonly kind: 'garbage' | 'broken_off' | 'aborted' | 'cut_short' | 'template' | 'no_room';

  constructor(kind: AnswerError['kind'], message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
  }
}

/** The prompt fills what it may have. */
export class PromptTooLongError extends AnswerError {
  readonly of: TokenLimit;

  constructor(message: string, of: TokenLimit) {
    super('no_room', message);
    this.of = of;
  }
}
