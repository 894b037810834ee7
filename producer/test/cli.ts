/** Runs the real `swefarm` as a process and returns its output. */
import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

export const BIN = fileURLToPath(new URL('../bin/swefarm.mjs', import.meta.url));
const FAKE = fileURLToPath(new URL('./fakeworker.ts', import.meta.url));

/** Returns the value of `--worker-command` for a fake worker. */
export const fakeWorker = (mode: string): string => `${process.execPath} ${FAKE} --mode ${mode}`;

export type Ran = { code: number | null; stdout: string; stderr: string };

/** Starts `swefarm` without the SWEFARM_*, REDIS_URL* and OPENAI_API_KEY* variables of this process. */
export function start(args: readonly string[], env: Record<string, string> = {}, bin = BIN) {
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(SWEFARM_|REDIS_URL|OPENAI_API_KEY)/.test(name)),
  );
  const child = spawn(process.execPath, [bin, ...args], {
    env: { ...clean, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = new Promise<Ran>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { child, ended, stdout: () => stdout, stderr: () => stderr };
}

export const run = (args: readonly string[], env: Record<string, string> = {}): Promise<Ran> =>
  start(args, env).ended;

export type Line = { rollout_id: string; outcome: string; reward: number | null; [key: string]: unknown };

export const jsonLines = (text: string): Line[] =>
  text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Line]));

export const linesOf = async (path: string): Promise<Line[]> => jsonLines(await readFile(path, 'utf8'));

/** Matches a process that ended with `code` and wrote `text` to standard error. */
export const exited = (code: number, text: string | RegExp) => ({
  code,
  stderr: typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text),
});

/** Returns the command lines of the processes that have this folder in their arguments or environment. */
export async function processesOf(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  const read = (pid: string, file: string): Promise<string> =>
    // The process may have ended since /proc was listed.
    readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
  const found = await Promise.all(
    pids.map(async (pid) => [await read(pid, 'cmdline'), await read(pid, 'environ')] as const),
  );
  return found
    .filter((texts) => texts.some((text) => text.includes(folder)))
    .map(([line]) => line.replaceAll('\0', ' '));
}
