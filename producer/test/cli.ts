/** Runs the real `swefarm` as a process and tells what it said. */
import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

export const BIN = fileURLToPath(new URL('../bin/swefarm.mjs', import.meta.url));
const FAKE = fileURLToPath(new URL('./fakeworker.ts', import.meta.url));

/** `--worker-command` of a fake worker. */
export const fakeWorker = (mode: string): string => `${process.execPath} ${FAKE} --mode ${mode}`;

export type Ran = { code: number | null; stdout: string; stderr: string };

/** Without any SWEFARM variable of whoever runs the tests. */
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

/** A process that ended with `code`, after it wrote `text` to standard error. */
export const exited = (code: number, text: string | RegExp) => ({
  code,
  stderr: typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text),
});

/** The words of a command line. A value between them is one word, a list of values as many. */
export const words = (line: TemplateStringsArray, ...values: (string | readonly string[])[]): string[] =>
  line.flatMap((text, at) => [...text.split(/\s+/).filter(Boolean), ...[values[at] ?? []].flat()]);

/** Command lines of the processes that were told of this folder, in their arguments or their environment. */
export async function processesOf(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  const read = (pid: string, file: string): Promise<string> =>
    // It may have ended since the folder was listed.
    readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
  const found = await Promise.all(
    pids.map(async (pid) => [await read(pid, 'cmdline'), await read(pid, 'environ')] as const),
  );
  return found
    .filter((texts) => texts.some((text) => text.includes(folder)))
    .map(([line]) => line.replaceAll('\0', ' '));
}
