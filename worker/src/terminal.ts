/** Opens an interactive bash on a pseudo terminal inside a sandbox, so that code in the sandbox never has the person's own terminal. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import type { Container } from '@swefarm/sandbox';
import { newId, sleep } from '@swefarm/shared';

const SCRIPT = readFileSync(new URL('./terminal.sh', import.meta.url), 'utf8');
const RESIZE = 'stty rows "$2" cols "$3" <"/proc/$(cat "$1")/fd/0"';
const RESIZE_MS = 5_000;
/**
 * Resets modes that a program in the sandbox may have left on: alternate screen, scroll margins, keys, mouse, focus, paste, hidden cursor, line
 * drawing, colours. It saves the cursor first, because leaving the alternate screen restores a saved cursor on both screens.
 */
const RESET =
  '\x1b7\x1b[?1049l\x1b7\x1b[r\x1b8\x1b[?1;1000;1002;1003;1004;1005;1006;1015;2004l\x1b>\x1b(B\x0f\x1b[?7;25h\x1b[0m';
/** Milliseconds of discarded input. The terminal's answers to the last queries would otherwise be typed into the person's own shell. */
const DISCARD_MS = 300;

/** The terminal of the person. `onResize` returns a function that unsubscribes. */
export type Screen = {
  input: Readable;
  output: Writable;
  size(): { rows: number; columns: number };
  onResize(changed: () => void): () => void;
};

/** Returns whether the image has what {@link openTerminal} needs. */
export async function hasTerminal(container: Container, signal: AbortSignal): Promise<boolean> {
  const argv = ['bash', '-c', 'python3 -c "import pty" || command -v script'];
  const { exitCode } = await container.exec(argv, { timeoutMs: 30_000, maxOutputBytes: 1024, signal });
  return exitCode === 0;
}

/**
 * Resolves when the shell ends. Passes all bytes unchanged: Ctrl-C becomes a signal in the sandbox, and output of the sandbox controls the
 * screen. Resets the screen's modes at the end.
 */
export async function openTerminal(
  container: Container,
  activate: string,
  screen: Screen,
  signal: AbortSignal,
): Promise<void> {
  const pidFile = `/tmp/.sf-${newId()}`;
  const sizes = () => [String(screen.size().rows), String(screen.size().columns)];
  const argv = ['bash', '-c', SCRIPT, 'bash', activate, container.workdir, pidFile, ...sizes()];
  const stream = await container.open(argv, signal);
  const resize = async () => {
    const line = ['bash', '-c', RESIZE, 'bash', pidFile, ...sizes()];
    // The shell may end before this runs.
    await container.exec(line, { timeoutMs: RESIZE_MS, maxOutputBytes: 1024, signal }).catch(() => undefined);
  };
  const stop = screen.onResize(() => void resize());
  const forward = (bytes: Buffer) => void stream.write(bytes);
  screen.input.on('data', forward);
  try {
    for await (const bytes of stream) {
      if (!screen.output.write(bytes)) await new Promise((resolve) => screen.output.once('drain', resolve));
    }
  } finally {
    stop();
    stream.destroy();
    const discard = () => undefined;
    screen.input.on('data', discard).off('data', forward);
    screen.output.write(RESET);
    await sleep(DISCARD_MS);
    screen.input.off('data', discard).pause();
  }
}

/** Returns this process's terminal in raw mode; disposing it ends raw mode. Input and output must be a terminal. */
export function ownScreen(): Screen & Disposable {
  const { stdin, stdout } = process;
  stdin.setRawMode(true);
  // Node's raw mode still writes a carriage return before each line feed. Editors use a line feed alone to move down.
  spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
  return {
    input: stdin,
    output: stdout,
    size: () => ({ rows: stdout.rows || 24, columns: stdout.columns || 80 }),
    onResize(changed) {
      stdout.on('resize', changed);
      return () => void stdout.off('resize', changed);
    },
    [Symbol.dispose]: () => void stdin.setRawMode(false),
  };
}
