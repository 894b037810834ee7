import { COMPILED, LASTING } from '../../bin/lasting.mjs';

/** Returns the command line and the environment of a file in `bin`. Variables of the caller have precedence. */
export const lastingCommand = (bin: string): { command: string[]; environment: Record<string, string> } => ({
  command: [process.execPath, ...LASTING.flags, bin],
  environment: { ...LASTING.settings, NODE_COMPILE_CACHE: COMPILED },
});
