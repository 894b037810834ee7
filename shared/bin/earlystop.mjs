/**
 * A signal that comes while a service still loads its code: nothing has begun, so the process ends at once, with the exit code of an
 * orderly end. Plain JavaScript, as all that is loaded first.
 */

/** Exit code after an error that nobody caught, as in shared/src/processes/escaped.ts. */
const ESCAPED_EXIT = 70;

/** Listens until the command has a listener of its own. `code`: what the process ends with. */
export function listenEarly(code) {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, (_name, number) => {
      if (process.listenerCount(signal) > 1) return;
      // The command itself asks for its end, after an error that nobody caught: then no number comes.
      process.exit(typeof number === 'number' ? code : ESCAPED_EXIT);
    });
  }
}
