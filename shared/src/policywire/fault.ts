/** What an endpoint can say that is no answer, before anyone decides whether to ask again. */

export class WireFault extends Error {
  override readonly name = 'WireFault';
  /**
   * `garbage`: not the protocol. `broken_off`: the engine stopped the answer for reasons of its own.
   * `template`: the model's chat template cannot be continued by appending.
   */
  readonly kind: 'garbage' | 'broken_off' | 'template';

  constructor(kind: WireFault['kind'], message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
  }
}
