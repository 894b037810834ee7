/** A farm as a trainer finds it: Redis, one worker and a gateway, each a process. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';

/** Starts the farm with callers in YAML or JSON, and returns the gateway's URL. `stack` ends the processes. */
export async function startGatewayFarm(
  stack: AsyncDisposableStack,
  folder: string,
  { callers, tokens }: { callers: string; tokens: Record<string, string> },
): Promise<string> {
  const redis = stack.use(await startRedis());
  const path = join(folder, 'callers.yaml');
  await writeFile(path, callers);
  const env = {
    ...tokens,
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
  };
  const worker = startCommand('swefarm-worker', ['run', '--runtime', 'rootfs', '--concurrency', '4'], env);
  const gateway = startCommand('swefarm', ['serve', '--port', '0', '--gateway-callers', path], env);
  for (const one of [worker, gateway]) {
    stack.defer(async () => {
      one.kill('SIGTERM');
      await one.exit;
    });
  }
  await Promise.all([worker.until(/"msg":"ready"/), gateway.until(/"port":\d+/)]);
  return (JSON.parse(gateway.stdout().split('\n')[0] ?? '{}') as { url: string }).url;
}
