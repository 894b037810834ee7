/** Tests uncaught errors in real processes, which must not end the farm, and a job that exceeds a worker's ceilings. */
import { loadConfig, openFarm } from '@swefarm/shared';
import { expect, onTestFinished, test } from 'vitest';
import { gatewayUrl, type Started, startCommand, words } from '../src/launchers/commands.ts';
import { startRedis } from '../src/launchers/redis.ts';
import { conversation } from '../src/policy/script.ts';
import { startScriptedPolicy } from '../src/policy/server.ts';
import { writeRow } from './e2e/hostrow.ts';
import { openScene } from './e2e/scene.ts';

/** Injects bugs into a process: SIGUSR2 causes an unhandled rejection, SIGHUP an uncaught exception. */
const FAULTS = `
  process.on('SIGUSR2', () => void Promise.reject(new Error('a promise that was lost')));
  process.on('SIGHUP', () => { throw new Error('thrown at nobody'); });
`;
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(FAULTS)}`;

const POLL = { timeout: 120_000, interval: 200 };

async function farmOf(turns: number) {
  const redis = await startRedis();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const policy = await startScriptedPolicy({
    script: conversation([{ command: 'pwd', repeat: turns }, { submit: true }]),
    delay: { fixed_ms: 250 },
  });
  onTestFinished(() => policy[Symbol.asyncDispose]());
  const scene = openScene({
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_RUNTIME: 'host',
    SWEFARM_DRAIN_GRACE_SECONDS: '3',
  });
  const start = (line: readonly string[], more: Record<string, string>): Started => {
    const [name, ...args] = line as ['swefarm' | 'swefarm-worker', ...string[]];
    const started = startCommand(name, args, { ...scene.env, ...more });
    onTestFinished(() => started.kill('SIGKILL'));
    return started;
  };
  const dataset = await writeRow(scene.folder);
  const submit = (...flags: readonly string[]): Promise<string> =>
    scene.submit`--dataset ${dataset} --no-eval --activate true --model m --policy-url ${policy.url} ${flags}`;
  const collect = async (run: string) => (await scene.collect(run)).lines;
  const farm = await openFarm(
    loadConfig('producer', { env: {}, flags: { redisUrl: redis.url } }),
    'producer',
  );
  onTestFinished(() => farm[Symbol.asyncDispose]());
  return { policy, start, submit, collect, farm };
}

test('after an exception a worker hands back its rollouts and exits with 70', async () => {
  const { policy, start, submit, collect, farm } = await farmOf(150);
  const faulty = {
    NODE_OPTIONS,
    SWEFARM_METRICS_PORT: 'auto',
    SWEFARM_MAX_CPUS: '2',
    SWEFARM_MAX_NETWORK: 'none',
  };
  const first = start(words`swefarm-worker run`, faulty);
  await first.until(/"msg":"ready"/);
  // A run that exceeds a ceiling of this worker fails without a reward.
  for (const [flags, output] of [
    [['--cpus', '3'], 'sandbox.cpus: 3 is beyond 2'],
    [['--agent-network', 'egress'], 'sandbox.agent_network: egress is beyond none'],
  ] as const) {
    const [line] = await collect(await submit(...flags));
    expect(line).toMatchObject({
      outcome: 'failed',
      reward: null,
      failure: { class: 'sandbox_refused', message: expect.stringContaining(output) },
    });
  }
  const run = await submit('--cpus', '2');
  await expect.poll(() => policy.stats().answered, POLL).toBeGreaterThan(2);
  first.kill('SIGUSR2');
  await first.until(/"escaped":"rejection"/);
  expect(first.stderr() + first.stdout()).toMatch(/a promise that was lost.*\\n +at /);
  const [, address = ''] = /"metrics":"([^"]+)"/.exec(first.stdout() + first.stderr()) ?? [];
  const metrics = await (await fetch(`http://${address}/metrics`)).text();
  expect(metrics).toContain('swefarm_worker_escaped_errors_total{kind="rejection"} 1');
  const answered = policy.stats().answered;
  await expect.poll(() => policy.stats().answered, POLL).toBeGreaterThan(answered + 2);

  first.kill('SIGHUP');
  expect(await first.exit).toBe(70);
  const output = first.stdout() + first.stderr();
  expect(output).toMatch(/"escaped":"exception"/);
  expect(output).toContain('thrown at nobody');
  const [id = ''] = await farm.groups.open(run);
  expect(await farm.journal.read(id)).toMatchObject([{ end: { class: 'drained' } }]);
  const second = start(words`swefarm-worker run`, {});
  expect(await collect(run)).toMatchObject([{ outcome: 'judged', attempt: 2 }]);
  expect(await second.stop()).toBe(0);
});

test('a gateway survives a rejection, and exits with 70 after an exception', async () => {
  const { start } = await farmOf(1);
  const token = { SWEFARM_GATEWAY_TOKEN: 'token-of-this' };
  const serving = start(words`swefarm serve --port 0`, { NODE_OPTIONS, ...token });
  const url = await gatewayUrl(serving);
  serving.kill('SIGUSR2');
  await serving.until(/a promise that was lost/);
  const headers = { authorization: 'Bearer token-of-this' };
  const metrics = await (await fetch(`${url}/metrics`, { headers })).text();
  expect(metrics).toContain('swefarm_gateway_escaped_errors_total{kind="rejection"} 1');
  serving.kill('SIGHUP');
  expect(await serving.exit).toBe(70);
  expect(serving.stderr() + serving.stdout()).toContain('thrown at nobody');
});
