/** Processes that must not outlive their starter, however it ends: where the system supports it, they get a SIGTERM then. */
import { existsSync } from 'node:fs';

const SETPRIV = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path));

/** The command, under util-linux's `setpriv --pdeathsig TERM` where it is installed. Start it from the main thread. */
export const dieWithParent = (command: readonly string[]): readonly string[] =>
  SETPRIV === undefined ? command : [SETPRIV, '--pdeathsig', 'TERM', '--', ...command];
