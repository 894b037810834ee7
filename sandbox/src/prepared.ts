/** A container that is started in advance; an unused one is removed. */
import { RolloutFailure } from '@swefarm/shared';
import type { Container } from './runtime.ts';

export class PreparedContainer implements AsyncDisposable {
  readonly #start: () => Promise<Container>;
  #ahead: Promise<Container | null> | null = null;
  #unusable: RolloutFailure | null = null;

  /** @param start called once by {@link begin}, and again by each later {@link take} */
  constructor(start: () => Promise<Container>) {
    this.#start = start;
  }

  /**
   * Starts the first container in the background. After a failed setup, which may have taken minutes, `take` throws its error;
   * after any other failure `take` tries again.
   */
  begin(): void {
    this.#ahead ??= this.#start().catch((error: unknown) => {
      if (error instanceof RolloutFailure && error.failureClass === 'setup_failed') this.#unusable = error;
      return null;
    });
  }

  async take(): Promise<Container> {
    const ahead = this.#ahead;
    this.#ahead = null;
    const ready = await ahead;
    if (this.#unusable) throw this.#unusable;
    return ready ?? this.#start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ahead = this.#ahead;
    this.#ahead = null;
    await (await ahead)?.[Symbol.asyncDispose]();
  }
}
