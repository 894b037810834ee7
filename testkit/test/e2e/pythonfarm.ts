/** Starts a gateway, a rootfs worker and one example, for tests that use them from Python. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { buildExamples } from '../../src/examples/build.ts';
import { gatewayUrl } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { callerOf, openScene } from './scene.ts';
import { EXAMPLE_ID } from './scripts.ts';

export const ROOT = join(import.meta.dirname, '../../..');
const TOKEN = 'a-token-of-this-test';

/** `python` runs the machine's python3 with this checkout's package and the gateway's address. */
export async function startFarm(stack: AsyncDisposableStack) {
  const redis = stack.use(await startRedis());
  const scene = openScene({
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_RUNTIME: 'rootfs',
    SWEFARM_CONCURRENCY: '4',
    SWEFARM_GATEWAY_TOKEN: TOKEN,
  });
  const url = await gatewayUrl(stack.use(scene.start`serve --port 0`));
  stack.use(await scene.worker``);
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
  // The packages are already installed in the images.
  const [row] = built.rows.map((one) => ({ ...one, install: 'true' }));
  const python = (words: readonly string[], env: Record<string, string> = {}) =>
    spawn('python3', words, {
      cwd: scene.folder,
      env: {
        PATH: process.env.PATH,
        PYTHONPATH: join(ROOT, 'producer/python'),
        PYTHONDONTWRITEBYTECODE: '1',
        SWEFARM_GATEWAY_URL: url,
        SWEFARM_GATEWAY_TOKEN: TOKEN,
        ...env,
      },
    });
  return { folder: scene.folder, call: callerOf(url, TOKEN), row, python };
}
