/** Starts a Docker engine beside the machine's engine, so that the test can restart it and all its containers belong to the test. */

import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@swefarm/shared';
import { ensureDocker } from '../src/launchers/docker.ts';
import { run } from '../src/launchers/run.ts';

export type Engine = AsyncDisposable & {
  readonly socketPath: string;
  /** Stops the engine with all its containers, and starts it again after `downMs`. */
  restart(downMs: number): Promise<void>;
  /** Ids of all containers, running or not. */
  containers(): Promise<string[]>;
};

/** Flags without a bridge and firewall rules, which belong to the machine's engine. */
const FLAGS = ['--bridge=none', '--iptables=false', '--ip6tables=false', '--shutdown-timeout=2'];

/** Starts the engine. Throws UnusableError if it cannot start; it needs docker.io and root. */
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

/** Removes the bind mount of an engine's data folder. The engine leaves the mount if `/` is not the root of a file system. */
async function unmount(folder: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  if (mounts.some((line) => line.split(' ')[4] === folder)) await run('umount', ['--lazy', folder]);
}
