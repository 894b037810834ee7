/** Runs the farm's own sandboxes in this process, without queue and agent. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig, type RuntimeName, silentLog } from '@swefarm/shared';
import { type Container, openRuntime, type Runtime } from '@swefarm/worker';
import { SOCKET } from './engine.ts';
import type { Skipped } from './shell.ts';

const GIB = 1024 ** 3;

export type OpenedRuntime = AsyncDisposable & { runtime: Runtime };

/** The runtime, or one line that explains why it cannot be measured here. */
export async function tryRuntime(name: RuntimeName): Promise<OpenedRuntime | string> {
  const scratch = await mkdtemp(join(tmpdir(), 'swefarm-bench-'));
  const remove = () => rm(scratch, { recursive: true, force: true });
  try {
    const config = loadConfig('worker', { env: {}, flags: { dockerSocket: SOCKET, scratchDir: scratch } });
    const runtime = await openRuntime(name, config, silentLog());
    const check = await runtime.check(AbortSignal.timeout(30_000));
    if (check.usable) {
      return {
        runtime,
        async [Symbol.asyncDispose]() {
          await runtime[Symbol.asyncDispose]();
          await remove();
        },
      };
    }
    await runtime[Symbol.asyncDispose]();
    await remove();
    return check.problems.join('; ');
  } catch (error) {
    await remove();
    return error instanceof Error ? error.message : String(error);
  }
}

/** Docker and rootfs, as far as they work here. */
export async function usableRuntimes(): Promise<{ usable: RuntimeName[]; skipped: Skipped[] }> {
  const usable: RuntimeName[] = [];
  const skipped: Skipped[] = [];
  for (const name of ['docker', 'rootfs'] as const) {
    const opened = await tryRuntime(name);
    if (typeof opened === 'string') skipped.push({ what: name, why: opened });
    else {
      usable.push(name);
      await opened[Symbol.asyncDispose]();
    }
  }
  return { usable, skipped };
}

/** The container that a rollout's agent would get, with the defaults of a run. */
export async function startAgentContainer(runtime: Runtime, image: string): Promise<Container> {
  const signal = AbortSignal.timeout(300_000);
  return await runtime.start(
    {
      image: await runtime.ensureImage(image, signal),
      role: 'agent',
      owner: {
        farm: 'bench',
        worker: 'bench',
        pid: process.pid,
        pid_started: '',
        rollout_id: 'bench',
        attempt: 1,
      },
      network: 'none',
      limits: { cpus: 1, memoryBytes: 4 * GIB, pids: 512, diskBytes: null },
      workdir: '/testbed',
      env: {},
    },
    signal,
  );
}
