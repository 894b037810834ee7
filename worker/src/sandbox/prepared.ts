/** A container started before it is needed, beside other work; an unused one is removed. */
import type { Container } from './runtime.ts';

export class PreparedContainer implements AsyncDisposable {
  readonly #start: () => Promise<Container>;
  #ahead: Promise<Container | null> | null = null;

  /** `start` is called once in advance by {@link begin}, and again by each later {@link take}. */
  constructor(start: () => Promise<Container>) {
    this.#start = start;
  }

  /** Starts the first container in the background. A failure is not lost: `take` tries again and reports it. */
  begin(): void {
    this.#ahead ??= this.#start().catch(() => null);
  }

  /** The container started ahead when there is one, else a new one; the caller disposes of it. */
  async take(): Promise<Container> {
    const ahead = this.#ahead;
    this.#ahead = null;
    return (await ahead) ?? this.#start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ahead = this.#ahead;
    this.#ahead = null;
    await (await ahead)?.[Symbol.asyncDispose]();
  }
}
