/** A Docker engine of our own beside the machine's, so that it can be restarted, and so that all of its containers are ours. */

import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '@swefarm/shared';
import { ensureDocker } from '../src/launchers/docker.ts';

const run = promisify(execFile);

export type Engine = AsyncDisposable & {
  readonly socketPath: string;
  /** Ends it with all its containers, and starts it again after `downMs`. */
  restart(downMs: number): Promise<void>;
  /** Ids of all containers, running or not. */
  containers(): Promise<string[]>;
};

/** No bridge and no rules of the firewall: those are the machine's engine's. */
const FLAGS = ['--bridge=none', '--iptables=false', '--ip6tables=false', '--shutdown-timeout=2'];

/** Throws UnusableError where no engine can be started (docker.io and root are needed). */
export async function startEngine(folder: string): Promise<Engine> {
  const stateDir = join(folder, 'engine');
  const socketPath = join(stateDir, 'docker.sock');
  const dataRoot = join(stateDir, 'data');
  const start = () =>
    ensureDocker({ socketPath, stateDir, dataRoot, flags: FLAGS, apart: true, timeoutMs: 60_000 });
  let engine = await start();
  return {
    socketPath,
    async restart(downMs) {
      await engine[Symbol.asyncDispose]();
      await sleep(downMs);
      engine = await start();
    },
    async containers() {
      const { stdout } = await run('docker', ['-H', `unix://${socketPath}`, 'ps', '-aq']);
      return stdout.split('\n').filter(Boolean);
    },
    async [Symbol.asyncDispose]() {
      await engine[Symbol.asyncDispose]();
      await unmount(dataRoot);
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}

/** An engine binds its data folder to itself, and leaves that where `/` is a folder of another file system, as in a bare root. */
async function unmount(folder: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  if (mounts.some((line) => line.split(' ')[4] === folder)) await run('umount', ['--lazy', folder]);
}
