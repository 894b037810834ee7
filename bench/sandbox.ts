/** Which runtimes of the farm work on this machine. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig, type RuntimeName, silentLog } from '@swefarm/shared';
import { openRuntime } from '@swefarm/worker';
import { SOCKET } from './engine.ts';

/** A measurement that this machine cannot make, and the reason. */
export type Skipped = { what: string; why: string };

/** Returns why the runtime cannot be measured here, or null when it can. */
async function problemOf(name: RuntimeName): Promise<string | null> {
  const scratch = await mkdtemp(join(tmpdir(), 'swefarm-bench-'));
  try {
    const config = loadConfig('worker', { env: {}, flags: { dockerSocket: SOCKET, scratchDir: scratch } });
    await using runtime = await openRuntime(name, config, silentLog());
    const check = await runtime.check(AbortSignal.timeout(30_000));
    return check.usable ? null : check.problems.join('; ');
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Returns which of Docker and rootfs work here. */
export async function usableRuntimes(): Promise<{ usable: RuntimeName[]; skipped: Skipped[] }> {
  const usable: RuntimeName[] = [];
  const skipped: Skipped[] = [];
  for (const name of ['docker', 'rootfs'] as const) {
    const why = await problemOf(name);
    if (why === null) usable.push(name);
    else skipped.push({ what: name, why });
  }
  return { usable, skipped };
}

/** Returns rootfs where it works, which costs the machine least; Docker elsewhere. */
export const cheapestRuntime = async (): Promise<RuntimeName> =>
  (await problemOf('rootfs')) === null ? 'rootfs' : 'docker';
