/** Starts a gateway, a rootfs worker and one example, for tests that use them from Python. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { freePort } from '@swefarm/shared';
import { buildExamples } from '../../src/examples/build.ts';
import { gatewayUrl } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { callerOf, openScene } from './scene.ts';
import { EXAMPLE_ID } from './scripts.ts';

export const ROOT = join(import.meta.dirname, '../../..');
const TOKEN = 'a-token-of-this-test';

/**
 * Starts the farm. `python` runs the machine's python3 with this checkout's package and the gateway's address. `replaceGateway` and
 * `replaceWorker` kill the process and start another one.
 */
export async function startFarm(stack: AsyncDisposableStack) {
  const redis = stack.use(await startRedis());
  const scene = openScene({
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_RUNTIME: 'rootfs',
    SWEFARM_CONCURRENCY: '4',
    SWEFARM_GATEWAY_TOKEN: TOKEN,
  });
  const port = await freePort();
  const serve = () => stack.use(scene.start`serve --port ${port}`);
  const work = async (name: string) => stack.use(await scene.worker`--worker-id ${name}py${process.pid}`);
  const gateway = serve();
  const url = await gatewayUrl(gateway);
  const worker = await work('one');
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
  // The packages are already installed in the images.
  const [row] = built.rows.map((one) => ({ ...one, install: 'true' }));
  const python = (words: readonly string[], env: Record<string, string> = {}) => {
    const child = spawn('python3', words, {
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
    stack.defer(() => void child.kill('SIGKILL'));
    return child;
  };
  const replaceGateway = async () => {
    gateway.kill('SIGKILL');
    await gateway.exit;
    await gatewayUrl(serve());
  };
  const replaceWorker = async () => {
    worker.kill('SIGKILL');
    await worker.exit;
    await work('two');
  };
  const call = callerOf(url, TOKEN);
  return { folder: scene.folder, call, row, python, replaceGateway, replaceWorker };
}
