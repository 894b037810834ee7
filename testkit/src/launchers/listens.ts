/** When a command handles SIGTERM: before its first line of code the kernel ends it by the signal itself. */
import type { Started } from './commands.ts';

/** Environment of a command that {@link untilListens} waits for. */
export const TELLS_LISTENING = { NODE_OPTIONS: `--import=${new URL('./listens.mjs', import.meta.url)}` };

/** Resolves when the command handles SIGTERM; rejects when it ends first. */
export const untilListens = (started: Started): Promise<void> => started.until(/SIGTERM is handled/);
