/** Runs one external command for the builder; its output is shown only when it fails. */
import { spawn } from 'node:child_process';
import { SwefarmError } from '@swefarm/shared';

export type RunOptions = {
  signal: AbortSignal;
  cwd?: string;
  /** The complete environment; the builder's own when absent. */
  env?: NodeJS.ProcessEnv;
  stdin?: string;
  /** Exit codes that are no error; [0] when absent. */
  allow?: readonly number[];
};

export type RunResult = { code: number; stdout: string; stderr: string };

/** Throws SwefarmError `example_command` with the last lines of stderr, or `example_missing` when there is no such program. */
export function run(argv: readonly [string, ...string[]], options: RunOptions): Promise<RunResult> {
  const [program, ...args] = argv;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ['pipe', 'pipe', 'pipe'],
      signal: options.signal,
    });
    const chunks: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] };
    child.stdout.on('data', (chunk: Buffer) => chunks.stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.stderr.push(chunk));
    // A program that never reads its input breaks the pipe; only its exit code decides whether it failed.
    child.stdin.on('error', () => child.stdin.destroy());
    child.stdin.end(options.stdin ?? '');
    child.on('error', (cause) => {
      const missing = 'code' in cause && cause.code === 'ENOENT';
      reject(
        new SwefarmError(missing ? 'example_missing' : 'example_command', `cannot run ${program}`, { cause }),
      );
    });
    child.on('close', (exit, signal) => {
      const code = exit ?? 128;
      const stdout = Buffer.concat(chunks.stdout).toString();
      const stderr = Buffer.concat(chunks.stderr).toString();
      if ((options.allow ?? [0]).includes(code)) return resolve({ code, stdout, stderr });
      const tail = (stderr.trim() || stdout.trim()).split('\n').slice(-12).join('\n');
      const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
      reject(new SwefarmError('example_command', `${argv.slice(0, 6).join(' ')}: ${how}\n${tail}`));
    });
  });
}

/** Whether a program is on the PATH. */
export async function has(program: string, signal: AbortSignal): Promise<boolean> {
  const found = await run(['sh', '-c', 'command -v "$1"', 'sh', program], { signal, allow: [0, 1, 127] });
  return found.code === 0;
}

/** Maps over the items, at most `width` at a time; after the first error no more are started. */
export async function mapLimited<T, R>(
  items: readonly T[],
  width: number,
  map: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const entries = items.entries();
  const lane = async () => {
    for (const [index, item] of entries) results[index] = await map(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, lane));
  return results;
}
