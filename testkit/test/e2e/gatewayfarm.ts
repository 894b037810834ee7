/** Starts a farm for a trainer: Redis, one worker and a gateway, each as a process. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gatewayUrl } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { type Call, callerOf, openScene } from './scene.ts';

const TOKEN = 'the-token-of-this-farm';

export type GatewayFarm = {
  folder: string;
  call: Call;
  /** Posts a row to `/run`. @param entry entry of the caller in the configuration */
  run(entry: string, row: Record<string, unknown>): Promise<{ status: number; text: string }>;
};

/** Starts the farm with callers in YAML or JSON, whose `token_env` is T. `stack` ends the processes. */
export async function startGatewayFarm(stack: AsyncDisposableStack, callers: string): Promise<GatewayFarm> {
  const redis = stack.use(await startRedis());
  const { folder, start, worker } = openScene({ SWEFARM_REDIS_URL: redis.url, T: TOKEN });
  const path = join(folder, 'callers.yaml');
  await writeFile(path, callers);
  const gateway = stack.use(start`serve --port 0 --gateway-callers ${path}`);
  stack.use(await worker`--runtime rootfs --concurrency 4`);
  const call = callerOf(await gatewayUrl(gateway), TOKEN);
  return {
    folder,
    call,
    async run(entry, row) {
      const asked = { ...row, responses_create_params: { input: [] }, agent_ref: { name: entry } };
      const reply = await call('POST', '/run', asked);
      return { status: reply.status, text: await reply.text() };
    },
  };
}
