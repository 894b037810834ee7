import { existsSync } from 'node:fs';

const SETPRIV = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path));

/** Returns the command with util-linux's `setpriv --pdeathsig TERM`, if installed. Start the command from the main thread. */
export const dieWithParent = (command: readonly string[]): readonly string[] =>
  SETPRIV === undefined ? command : [SETPRIV, '--pdeathsig', 'TERM', '--', ...command];
