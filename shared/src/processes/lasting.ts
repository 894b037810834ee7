/** Starts a long-running command with its settings of Node. */
import { COMPILED, LASTING } from '../../bin/lasting.mjs';

/** Returns the command line of a `bin` file and its environment, over which the caller's variables have precedence. */
export const lastingCommand = (bin: string): { command: string[]; environment: Record<string, string> } => ({
  command: [process.execPath, ...LASTING.flags, bin],
  environment: { ...LASTING.settings, NODE_COMPILE_CACHE: COMPILED },
});
