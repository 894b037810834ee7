/** The farm that our scripts put before Gym's programs: Redis, scripted policy, one example, a worker and `serve`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { newId } from '@swefarm/shared';
import { type BuiltExamples, buildExamples } from '../../src/examples/build.ts';
import { startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { loadScript } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';

export type Runtime = 'docker' | 'rootfs';
export const EXAMPLE = 'r1chardj0n3s__parse-1.20.2';
const ROOT = resolve(import.meta.dirname, '../../..');

export type Farm = AsyncDisposable & {
  folder: string;
  built: BuiltExamples;
  token: string;
  port: number;
  policyUrl: string;
};

/** `delayMs`: how long the policy takes for a turn. Even rollouts resolve, odd ones do not. */
export async function startFarm(options: {
  runtime: Runtime;
  concurrency: number;
  delayMs: number;
  serve?: readonly string[];
}): Promise<Farm> {
  const { runtime, concurrency, delayMs } = options;
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-gym-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const { conversations } = loadScript(join(ROOT, 'examples/policy/examples.yaml'));
  const variants = conversations.find(({ name }) => name?.startsWith('parse'))?.variants.slice(0, 2) ?? [];
  const redis = stack.use(await startRedis());
  const policy = stack.use(
    await startScriptedPolicy({
      script: { conversations: [{ variants }], delay: { fixed_ms: delayMs } },
    }),
  );
  const built = await buildExamples({ ids: [EXAMPLE], for: runtime, out: folder });
  const token = newId();
  const env = {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_GATEWAY_TOKEN: token,
  };
  const worker = startCommand(
    'swefarm-worker',
    ['run', '--runtime', runtime, '--concurrency', String(concurrency)],
    env,
  );
  const serve = startCommand(
    'swefarm',
    [
      ...['serve', '--port', '0', '--policy-url', policy.url, '--model', 'scripted', '--token-mode', 'echo'],
      ...(options.serve ?? []),
    ],
    env,
  );
  for (const one of [worker, serve]) {
    stack.defer(async () => {
      one.kill('SIGTERM');
      await one.exit;
    });
  }
  await Promise.all([worker.until(/"msg":"ready"/), serve.until(/"port":\d+/)]);
  const { port } = JSON.parse(serve.stdout().split('\n')[0] ?? '{}') as { port: number };
  const owned = stack.move();
  return {
    ...{ folder, built, token, port, policyUrl: policy.url },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
