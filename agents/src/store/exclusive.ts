/** Excludes other processes, also those of other nodes on a shared file system, by the program `flock` of util-linux. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { childEnvironment, UnusableError } from '@swefarm/shared';

/**
 * Waits until no other process has the lock of `path`. The lock ends with the returned object or with this process: the holder is a child
 * that ends when its standard input closes.
 *
 * @throws UnusableError without the program `flock`; the reason of the signal
 */
export async function lockFile(path: string, signal: AbortSignal): Promise<AsyncDisposable> {
  signal.throwIfAborted();
  const child = spawn('flock', [path, 'sh', '-c', 'echo locked; exec cat >/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: childEnvironment(),
  });
  child.stdin.on('error', () => undefined);
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint += chunk;
  });
  const closed = once(child, 'close').catch((error: Error) => {
    complaint = error.message;
  });
  const stop = (): void => void child.kill();
  signal.addEventListener('abort', stop, { once: true });
  const locked = await Promise.race([once(child.stdout, 'data').then(() => true), closed.then(() => false)]);
  signal.removeEventListener('abort', stop);
  const release = async (): Promise<void> => {
    child.stdin.end();
    await closed;
  };
  if (locked && !signal.aborted) return { [Symbol.asyncDispose]: release };
  await release();
  signal.throwIfAborted();
  throw new UnusableError('lock', `cannot lock ${path}: ${complaint.trim()}: install util-linux (flock)`);
}
