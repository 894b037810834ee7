/** Handles Ctrl-C and SIGTERM: the first signal drains, the second signal ends the process at once. */
import { printStatus } from './terminal.ts';

export type Stop = {
  /** Aborted by the first signal. */
  readonly draining: AbortSignal;
  /** Registers an action that runs at the second signal, before the process ends. */
  onForced(action: () => void): void;
};

/** npx and the launcher forward signals that the terminal also sends: two signals within this time are one Ctrl-C. */
const ONE_PRESS_MS = 400;

/** Listens for signals. Calls `onDrain` once, at the first signal. */
export function listenForStop(onDrain: () => void = () => undefined): Stop {
  const draining = new AbortController();
  const forced: (() => void)[] = [];
  let first = 0;
  const handle = (): void => {
    if (draining.signal.aborted) {
      if (Date.now() - first < ONE_PRESS_MS) return;
      for (const action of forced) action();
      process.exit(130);
    }
    first = Date.now();
    draining.abort();
    onDrain();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, handle);
  return { draining: draining.signal, onForced: (action) => void forced.push(action) };
}

/** Calls {@link listenForStop} with a message for commands that run evaluations. */
export const listenForEvaluations = (): Stop =>
  listenForStop(() =>
    printStatus(
      '\nswefarm: draining: running evaluations may end, no new ones start; Ctrl-C again stops at once',
    ),
  );
