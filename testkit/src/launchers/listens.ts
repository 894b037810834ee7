/** Waits until a command handles SIGTERM. Before that, the signal ends the command at once. */
import type { Started } from './commands.ts';

/** Environment of a command that {@link untilListens} waits for. */
export const TELLS_LISTENING = { NODE_OPTIONS: `--import=${new URL('./listens.mjs', import.meta.url)}` };

/** Resolves when the command handles SIGTERM; rejects when it ends first. */
export const untilListens = (started: Started): Promise<void> => started.until(/SIGTERM is handled/);
