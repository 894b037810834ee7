/** Times in which the trainer pauses the policy; the agent's clocks stop meanwhile. */

export interface Pause {
  readonly paused: boolean;
  seconds(): number;
  /** Calls the listener at each start and end of a pause; returns a function that unsubscribes. */
  onChange(listener: () => void): () => void;
}

/** Pause of a policy that no trainer pauses. */
export const NEVER_PAUSED: Pause = { paused: false, seconds: () => 0, onChange: () => () => undefined };

/** Resolves when the policy is not paused. Throws the signal's reason when aborted. */
export async function untilServing(pause: Pause, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!pause.paused) return;
  await new Promise<void>((resolve) => {
    const check = () => {
      if (pause.paused && !signal.aborted) return;
      stop();
      signal.removeEventListener('abort', check);
      resolve();
    };
    const stop = pause.onChange(check);
    signal.addEventListener('abort', check, { once: true });
  });
  signal.throwIfAborted();
}
