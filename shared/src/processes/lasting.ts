import { COMPILED, LASTING } from '../../bin/lasting.mjs';

/** Returns the command line and the environment of a file in `bin`. The variables of the caller must override this environment. */
export const lastingCommand = (bin: string): { command: string[]; environment: Record<string, string> } => ({
  command: [process.execPath, ...LASTING.flags, bin],
  environment: { ...LASTING.settings, NODE_COMPILE_CACHE: COMPILED },
});
