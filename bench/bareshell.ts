/**
 * The minimal persistent shell of the floor: it runs `( command )` in one bash and detects the end by a
 * marker. It has no limits, no kill and no output cap, and the first `exec` breaks it.
 */
import type { Readable } from 'node:stream';

export type BareShell = {
  /** Runs a command and returns its output and exit code. Rejects when the bash ends. */
  run(command: string): Promise<{ exitCode: number; output: string }>;
  close(): void;
};

export type BareStreams = { stdin: NodeJS.WritableStream; output: Readable };

/** `prepare` runs once, before the first command. */
export async function openBareShell({ stdin, output }: BareStreams, prepare = ':'): Promise<BareShell> {
  const marker = `bench-${Math.random().toString(36).slice(2)}`;
  const end = new RegExp(`\\n${marker} (\\d+)\\n$`);
  let text = '';
  let waiting: {
    resolve: (ended: { exitCode: number; output: string }) => void;
    reject: (error: Error) => void;
  } | null = null;
  output.setEncoding('utf8');
  output.on('data', (chunk: string) => {
    text += chunk;
    const found = end.exec(text);
    if (!found) return;
    const ended = { exitCode: Number(found[1]), output: text.slice(0, found.index) };
    text = '';
    waiting?.resolve(ended);
  });
  output.once('close', () => waiting?.reject(new Error('the bare shell ended')));
  const run = (command: string): Promise<{ exitCode: number; output: string }> =>
    new Promise((resolve, reject) => {
      waiting = { resolve, reject };
      stdin.write(`( ${command}\n) </dev/null 2>&1; printf '\\n${marker} %s\\n' $?\n`);
    });
  stdin.write(`cd /testbed; ${prepare}\n`);
  await run(':');
  return { run, close: () => void stdin.end() };
}
