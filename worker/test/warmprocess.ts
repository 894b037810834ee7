/** A worker as a process of its own, with a prefix of its own on the tests' Redis, whose metrics can be read. */
import { join } from 'node:path';
import type { Owner } from '@swefarm/sandbox';
import { type Farm, freePort, newId } from '@swefarm/shared';
import { type Started, startCommand } from '@swefarm/testkit';
import { onTestFinished } from 'vitest';
import { openScene, redisUrl } from './maintenance/farm.ts';
import { SOCKET } from './warmscene.ts';

export type WorkerProcess = {
  process: Started;
  id: string;
  farm: Farm;
  metrics(): Promise<string>;
  /** The owners of its sandboxes. */
  owners(): Promise<Owner[]>;
};

export type WorkerProcessGiven = { runtime: string; folder: string; flags: readonly string[] };

/** One slot; ready when it answers. Killed at the end of the test, unless it has ended. */
export async function startWorkerProcess({
  runtime,
  folder,
  flags,
}: WorkerProcessGiven): Promise<Omit<WorkerProcess, 'owners'>> {
  const [id, prefix, port] = [`warm-${newId()}`, `k-${newId()}`, await freePort()];
  const { farm } = await openScene(prefix);
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const process = startCommand(
    'swefarm-worker',
    [
      ...['run', '--runtime', runtime, '--docker-socket', SOCKET, '--concurrency', '1', '--worker-id', id],
      ...['--metrics-port', String(port), '--drain-grace-seconds', '15', '--live-turns', '0', ...flags],
    ],
    {
      ...{ SWEFARM_REDIS_URL: redisUrl(), SWEFARM_REDIS_PREFIX: prefix },
      ...{ SWEFARM_STATE_DIR: join(folder, 'state'), SWEFARM_IMAGES_DIR: join(folder, 'images') },
      SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    },
  );
  onTestFinished(() => process.kill('SIGKILL'));
  await process.until(/"msg":"ready"/);
  const metrics = async (): Promise<string> =>
    await fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text());
  return { process, id, farm, metrics };
}
