/** Handles signals while a service loads its code: the process exits with the exit code of a normal stop. */

/** Exit code after an uncaught error, as in shared/src/processes/escaped.ts. */
const ESCAPED_EXIT = 70;

/** Exits with `code` on SIGINT or SIGTERM, until the command adds its own listener of the signal. */
export function listenEarly(code) {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, (_name, number) => {
      if (process.listenerCount(signal) > 1) return;
      // After an uncaught error the command emits the signal itself, without a number.
      process.exit(typeof number === 'number' ? code : ESCAPED_EXIT);
    });
  }
}
