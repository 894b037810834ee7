/** Worker processes that a test kills. They share a scratch folder, and serve the farm of one prefix. */
import { join } from 'node:path';
import { newId } from '@swefarm/shared';
import { type Started, startCommand } from '@swefarm/testkit';
import { onTestFinished } from 'vitest';
import { redisUrl } from './maintenance/farm.ts';
import type { Machine } from './matrix/scene.ts';

/** @param concurrency number of rollouts that each worker runs at once */
export function workerStarter(
  opened: Machine,
  runtime: string,
  prefix: string,
  concurrency = 1,
): { scratch: string; start(): Started } {
  const scratch = join(opened.folder, `scratch-${newId()}`);
  return {
    scratch,
    start() {
      const flags = ['run', '--runtime', runtime, '--concurrency', String(concurrency)];
      const worker = startCommand('swefarm-worker', flags, {
        ...{ SWEFARM_REDIS_URL: redisUrl(), SWEFARM_REDIS_PREFIX: prefix, SWEFARM_SCRATCH_DIR: scratch },
        ...{ SWEFARM_STATE_DIR: join(opened.folder, 'state'), SWEFARM_REDIS_DURABILITY: 'best_effort' },
        ...{ SWEFARM_AGENTS_DIR: join(opened.folder, 'agents'), SWEFARM_LOG_LEVEL: 'debug' },
      });
      onTestFinished(() => worker.kill('SIGKILL'));
      return worker;
    },
  };
}
