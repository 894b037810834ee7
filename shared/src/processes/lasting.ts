/** Starts a command of ours as it would start itself, without the Node in between that only reads its settings. */
import { COMPILED, LASTING } from '../../bin/lasting.mjs';

/** The command line of a lasting command by its `bin` file, and the environment to add; a value of the caller's own wins. */
export const lastingCommand = (bin: string): { command: string[]; environment: Record<string, string> } => ({
  command: [process.execPath, ...LASTING.flags, bin],
  environment: { ...LASTING.settings, NODE_COMPILE_CACHE: COMPILED },
});
