/** What an endpoint can say that is no answer, before anyone decides whether to ask again. */
import type { Overflow } from './refusal.ts';

/** The endpoint's word that prompt and answer do not fit, in its own words. */
export class OverflowSignal extends Error {
  override readonly name = 'OverflowSignal';
  readonly overflow: Overflow;

  constructor(message: string, overflow: Overflow = { limit: null, room: null }) {
    super(message);
    this.overflow = overflow;
  }
}

export class WireFault extends Error {
  override readonly name = 'WireFault';
  /**
   * `garbage`: not the protocol. `broken_off`: something went wrong in the engine. `aborted`: it stopped the answer for other reasons.
   * `cut_short`: the stream ended before the answer.
   * `template`: the model's chat template cannot be continued by appending. `no_room`: the prompt fills the context.
   */
  readonly kind: 'garbage' | 'broken_off' | 'aborted' | 'cut_short' | 'template' | 'no_room';

  constructor(kind: WireFault['kind'], message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
  }
}
