/**
 * Handles uncaught errors. An unhandled rejection fails at most the work that caused it, so the process logs, counts and continues. After
 * an uncaught exception the state of the process is unknown, so the process returns its work to the queue and exits.
 */
import { maskSecrets } from '../security/secret.ts';

export type EscapedKind = 'rejection' | 'exception';
export type EscapedListener = (kind: EscapedKind, error: unknown) => void;

/** Exit code after an uncaught exception: EX_SOFTWARE (internal software error) of sysexits.h. */
export const ESCAPED_EXIT = 70;

const counts: Record<EscapedKind, number> = { rejection: 0, exception: 0 };
const listeners = new Set<EscapedListener>();

export const escapedErrors = (): Readonly<Record<EscapedKind, number>> => counts;

/** Calls the listener with each uncaught error, instead of writing to standard error. */
export function onEscaped(listener: EscapedListener): Disposable {
  listeners.add(listener);
  return { [Symbol.dispose]: () => void listeners.delete(listener) };
}

/**
 * Installs the handlers; call this function once, before all other code. At the first exception, `stop` begins a normal stop and returns
 * whether it could. At the second exception the process exits.
 */
export function catchEscaped(name: string, stop: () => boolean): void {
  const report = (kind: EscapedKind, error: unknown): void => {
    counts[kind] += 1;
    if (listeners.size === 0) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      process.stderr.write(`${name}: ${MESSAGES[kind]}, please report it: ${maskSecrets(text)}\n`);
    }
    for (const listener of listeners) listener(kind, error);
  };
  process.on('unhandledRejection', (reason) => report('rejection', reason));
  process.on('uncaughtException', (error) => {
    report('exception', error);
    if (counts.exception > 1 || !stop()) process.exit(ESCAPED_EXIT);
  });
}

const MESSAGES: Record<EscapedKind, string> = {
  rejection: 'unhandled rejection',
  exception: 'uncaught exception',
};

export function logEscaped(log: { error(fields: object, message: string): void }): EscapedListener {
  return (kind, error) => log.error({ err: error, escaped: kind }, MESSAGES[kind]);
}

/** Returns the exit code of the process; undefined without an uncaught exception. */
export const escapedExit = (): number | undefined => (counts.exception > 0 ? ESCAPED_EXIT : undefined);
