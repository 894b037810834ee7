/** Times in which the trainer pauses the policy; the agent's clocks stop meanwhile. */
import { untilAborted } from '@swefarm/shared';

export interface Pause {
  readonly paused: boolean;
  seconds(): number;
  /** Calls the listener at each start and end of a pause; returns a function that unsubscribes. */
  onChange(listener: () => void): () => void;
}

/** Resolves when the policy is not paused. Throws the signal's reason when aborted. */
export async function untilServing(pause: Pause, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!pause.paused) return;
  const serving = Promise.withResolvers<void>();
  const stop = pause.onChange(() => pause.paused || serving.resolve());
  await untilAborted(serving.promise, signal).finally(stop);
}
