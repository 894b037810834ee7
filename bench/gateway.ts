/**
 * The gateway under a training step: many calls held at once, answers that grow to tens of thousands of tokens, connections
 * cut and the gateway killed in between. The benchmark commits the results in place of workers, so that it measures the gateway only.
 */
import { readFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { type Farm, freePort, loadConfig, newId, openFarm, sleep } from '@swefarm/shared';
import { type Started, startCommand, until } from '@swefarm/testkit';
import { type BenchEnvironment, openEnvironment } from './farm.ts';
import { insist, rowOf } from './gateway/caller.ts';
import { commitAll } from './gateway/results.ts';

export type GatewaySize = { calls: number; turns: number; tokens: number; cut: number };

export type GatewayPart = GatewaySize & {
  answered: number;
  /** Rollouts that were started; more of them than calls is a bug. */
  rollouts: number;
  posts: number;
  answer_bytes: number;
  gateway_peak_bytes: number;
  redis_bytes_per_call: number;
  /** From the first commit to the last answer. */
  delivery_seconds: number;
};

/** 88 turns of this many tokens make 60,000; a fifth of the calls are cut, 100 at most. */
export const gatewaySize = (calls: number, turns: number): GatewaySize => ({
  calls,
  turns,
  tokens: turns * 682,
  cut: Math.min(100, Math.floor(calls / 5)),
});

const TOKEN = newId();

export async function measureGateway(size: GatewaySize): Promise<GatewayPart> {
  await using environment = await openEnvironment();
  const prefix = `bench-gateway-${Date.now()}`;
  const flags = { redisUrl: environment.redisUrl, redisPrefix: prefix };
  await using farm = await openFarm(loadConfig('producer', { env: {}, flags }), 'producer');
  const port = await freePort();
  let gateway = await serve(environment, prefix, port);
  const rss = watchRss(() => gateway.pid);
  const counted = { posts: 0, bytes: 0 };
  const cutting = new AbortController();
  const agent = new Agent({ keepAlive: true, maxSockets: size.calls });
  const target = { agent, port, token: TOKEN };
  try {
    const calls = Array.from({ length: size.calls }, (_, index) =>
      insist(target, rowOf(index), counted, index < size.cut ? cutting.signal : null),
    );
    const answers = Promise.all(calls);
    const isHeld = async () => (await farm.calls.count()).held === size.calls;
    await until(isHeld, { withinMs: 300_000, pauseMs: 100, what: 'every call is held' });
    const rollouts = await openRollouts(farm);
    // Halfway through: some callers disconnect and reconnect, then the gateway is killed and restarted.
    cutting.abort();
    await sleep(300);
    gateway.kill('SIGKILL');
    await gateway.exit;
    gateway = await serve(environment, prefix, port);
    const from = performance.now();
    await commitAll(farm, rollouts, size);
    const ids = await answers;
    const seconds = (performance.now() - from) / 1000;
    return {
      ...size,
      answered: new Set(ids).size,
      rollouts: (await openRollouts(farm)).length,
      posts: counted.posts,
      answer_bytes: Math.round(counted.bytes / size.calls),
      gateway_peak_bytes: rss.peak(),
      redis_bytes_per_call: Math.round((await redisBytes(farm)) / size.calls),
      delivery_seconds: Math.round(seconds * 10) / 10,
    };
  } finally {
    rss.stop();
    agent.destroy();
    gateway.kill('SIGTERM');
    await gateway.exit;
  }
}

async function serve(environment: BenchEnvironment, prefix: string, port: number): Promise<Started> {
  const args = [
    'serve',
    '--port',
    String(port),
    '--redis-prefix',
    prefix,
    '--state-dir',
    join(environment.folder, 'state'),
  ];
  const started = startCommand('swefarm', args, {
    SWEFARM_REDIS_URL: environment.redisUrl,
    SWEFARM_GATEWAY_TOKEN: TOKEN,
    SWEFARM_GATEWAY_GRACE_SECONDS: '60',
  });
  await started.until(/"port":\d+/);
  return started;
}

async function openRollouts(farm: Farm): Promise<string[]> {
  const runs = await farm.runs.list();
  return (await Promise.all(runs.map(({ run_id }) => farm.groups.rollouts(run_id)))).flat();
}

/** Size of the farm's artifacts, which are by far the most that a call leaves in Redis. */
const redisBytes = async (farm: Farm): Promise<number> => (await farm.artifacts.usage()).used_bytes;

function watchRss(pid: () => number): { peak(): number; stop(): void } {
  let peak = 0;
  const timer = setInterval(() => {
    readFile(`/proc/${pid()}/status`, 'utf8').then(
      (text) => {
        peak = Math.max(peak, Number(/VmHWM:\s+(\d+)/.exec(text)?.[1] ?? 0) * 1024);
      },
      () => undefined,
    );
  }, 200);
  return { peak: () => peak, stop: () => clearInterval(timer) };
}
