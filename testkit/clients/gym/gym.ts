/** Runs the released `gym` command without a network beside the farm, and records failed checks. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseLines } from '../../src/lines.ts';

export type Row = Record<string, unknown>;

/** Reads the complete lines of a file; none if the file does not exist. */
export async function linesOf(path: string): Promise<Row[]> {
  const text = existsSync(path) ? await readFile(path, 'utf8') : '';
  return parseLines(text.slice(0, text.lastIndexOf('\n') + 1));
}

export type Check = (what: string, found: unknown, wanted: unknown) => void;

export function startChecks(): { check: Check; wrong: string[] } {
  const wrong: string[] = [];
  const check: Check = (what, found, wanted) => {
    const good = JSON.stringify(found) === JSON.stringify(wanted);
    const more = good ? '' : `, wanted ${JSON.stringify(wanted)}`;
    console.log(`${good ? 'ok  ' : 'FAIL'} ${what}: ${JSON.stringify(found)}${more}`);
    if (!good) wrong.push(what);
  };
  return { check, wrong };
}

export type Gym = { child: ChildProcess; ended: Promise<number | string>; output: () => string };

/** Returns a function that starts `gym` in `folder`, which must not contain Gym's own files, because Gym reads and writes there. */
export const gymIn =
  (venv: string, folder: string) =>
  (args: readonly string[]): Gym => {
    const child = spawn(resolve(venv, 'bin/gym'), args, {
      cwd: folder,
      detached: true,
      env: {
        PATH: `${resolve(venv, 'bin')}:${process.env.PATH ?? ''}`,
        HOME: folder,
        HF_HUB_OFFLINE: '1',
        DO_NOT_TRACK: '1',
        WANDB_MODE: 'disabled',
        RAY_USAGE_STATS_ENABLED: '0',
        // Without this variable Ray listens on all addresses of the machine.
        RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER: '0',
        RAY_ADDRESS: '',
        NO_PROXY: '127.0.0.1',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    const ended = once(child, 'close').then(([code, signal]) => {
      if (code !== 0 && signal !== 'SIGKILL') console.log(output.slice(-3000));
      return (code ?? signal) as number | string;
    });
    return { child, ended, output: () => output };
  };

/** Kills the process group of the command, if the command has not ended. */
export function endGym({ child }: Gym): void {
  const ended = child.exitCode !== null || child.signalCode !== null;
  if (!ended && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
}
