/**
 * Handles errors that escaped every handler. An unhandled rejection harms at most the work it belongs to: it is logged and counted,
 * and the process goes on. After an uncaught exception the state of the process is unknown: it hands back what runs and exits with
 * a code of its own. Node's default would end the process with code 1 in both cases.
 */
import { maskSecrets } from '../security/secret.ts';

export type EscapedKind = 'rejection' | 'exception';
export type EscapedListener = (kind: EscapedKind, error: unknown) => void;

/** Exit code after an uncaught exception; sysexits calls it an internal software error. */
export const ESCAPED_EXIT = 70;

const counts: Record<EscapedKind, number> = { rejection: 0, exception: 0 };
const listeners = new Set<EscapedListener>();

/** How many errors escaped in this process. */
export const escapedErrors = (): Readonly<Record<EscapedKind, number>> => counts;

/** From now on calls the listener with each escaped error, instead of writing to standard error. */
export function onEscaped(listener: EscapedListener): Disposable {
  listeners.add(listener);
  return { [Symbol.dispose]: () => void listeners.delete(listener) };
}

/**
 * Call once, before anything else. `stop` begins an orderly end of the process and returns whether it could; it is called at the
 * first exception. At the second one the process ends at once.
 */
export function catchEscaped(name: string, stop: () => boolean): void {
  const tell = (kind: EscapedKind, error: unknown): void => {
    counts[kind] += 1;
    if (listeners.size === 0) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      process.stderr.write(`${name}: ${WORDS[kind]}, please report it: ${maskSecrets(text)}\n`);
    }
    for (const listener of listeners) listener(kind, error);
  };
  process.on('unhandledRejection', (reason) => tell('rejection', reason));
  process.on('uncaughtException', (error) => {
    tell('exception', error);
    if (counts.exception > 1 || !stop()) process.exit(ESCAPED_EXIT);
  });
}

const WORDS: Record<EscapedKind, string> = {
  rejection: 'an error that nobody waited for',
  exception: 'an error that nobody caught',
};

/** A listener that logs the error with its stack. */
export function logEscaped(log: { error(fields: object, message: string): void }): EscapedListener {
  return (kind, error) => log.error({ err: error, escaped: kind }, WORDS[kind]);
}

/** The exit code of the process; undefined when no exception escaped. */
export const escapedExit = (): number | undefined => (counts.exception > 0 ? ESCAPED_EXIT : undefined);
