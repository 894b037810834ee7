/** Handles signals while a service loads its code: the process exits with the code of an orderly end. */

/** Exit code after an uncaught error, as in shared/src/processes/escaped.ts. */
const ESCAPED_EXIT = 70;

/** Listens until the command has a listener of its own. @param code exit code */
export function listenEarly(code) {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, (_name, number) => {
      if (process.listenerCount(signal) > 1) return;
      // After an uncaught error the command emits the signal itself, without a number.
      process.exit(typeof number === 'number' ? code : ESCAPED_EXIT);
    });
  }
}
