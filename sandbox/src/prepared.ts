/** A container that is started in advance. Disposing removes the container if it was not taken. */
import { RolloutFailure } from '@swefarm/shared';
import type { Container } from './runtime.ts';

export class PreparedContainer implements AsyncDisposable {
  readonly #start: () => Promise<Container>;
  #ahead: Promise<Container | null> | null = null;
  #unusable: RolloutFailure | null = null;

  /** @param start called by {@link begin}, and by each {@link take} that finds no started container */
  constructor(start: () => Promise<Container>) {
    this.#start = start;
  }

  /**
   * Starts the first container in the background. If the setup failed, `take` throws that error, because a setup may take minutes.
   * After any other failure, `take` starts a container again.
   */
  begin(): void {
    this.#ahead ??= this.#start().catch((error: unknown) => {
      if (error instanceof RolloutFailure && error.failureClass === 'setup_failed') this.#unusable = error;
      return null;
    });
  }

  /** Sets the container that the next {@link take} returns. An agent has worked in this container. */
  give(container: Container): void {
    this.#ahead = Promise.resolve(container);
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
