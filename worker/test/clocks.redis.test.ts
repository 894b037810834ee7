/** Nodes with clocks a day off beside a node with the right time: delays have their intended length. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { AgentConfig, loadConfig, newId, openFarm } from '@swefarm/shared';
import { bareInstance, bareRun, shiftedClock } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { redisUrl } from './maintenance/farm.ts';

const PATIENCE = { timeout: 60_000, interval: 50 };
const SCRIPT = fileURLToPath(new URL('oneworker.ts', import.meta.url));

async function scene() {
  const flags = { redis_url: redisUrl(), redis_prefix: `{c-${newId()}}`, placement: 'off' };
  const farm = await openFarm(loadConfig('worker', { env: {}, flags }), 'producer');
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const run = bareRun({ group_size: 2, agent: AgentConfig.parse({ type: 'noop' }) });
  await farm.runs.create(run, [bareInstance()]);
  const ids = await farm.groups.rollouts(run.run_id);
  await farm.groups.pause(run.run_id, 'somebody looks at it');
  await farm.jobs.enqueue(run, ids);
  const start = async (worker: string, offset: string) => {
    const own = JSON.stringify({ ...flags, worker_id: worker, node: `node-${worker}` });
    const child = spawn(process.execPath, [SCRIPT, own, '0'], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, ...(await shiftedClock(offset)) },
    });
    const ended = once(child, 'exit');
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await ended;
    });
  };
  /** Milliseconds by the clock of Redis until each delayed job is due. */
  const dueIn = async (): Promise<number[]> => {
    const redis = farm.bullConnection() as unknown as { zrange(...args: unknown[]): Promise<string[]> };
    const scores = await redis.zrange(`${flags.redis_prefix}:rollouts:delayed`, 0, -1, 'WITHSCORES');
    const now = await farm.clock.ask();
    return scores.filter((_, at) => at % 2 === 1).map((score) => Number(score) / 4096 - now);
  };
  return { farm, run, ids, start, dueIn };
}

test.each(['+1d', '-1d'])(
  'a worker whose clock is %s off delays jobs by the intended time and continues',
  async (offset) => {
    const at = await scene();
    await at.start('off', offset);
    await expect.poll(async () => (await at.dueIn()).length, PATIENCE).toBe(2);
    const { delayed = 0 } = await at.farm.queue().getJobCounts('delayed');
    expect(delayed).toBe(2);
    for (const ms of await at.dueIn()) {
      expect(ms).toBeGreaterThan(0);
      expect(ms).toBeLessThan(11_000);
    }
    await at.farm.groups.resume(at.run.run_id, null);
    await expect.poll(async () => (await at.farm.results.counts(at.run.run_id)).committed, PATIENCE).toBe(2);
    const { results } = await at.farm.results.read(at.run.run_id, '0');
    const now = await at.farm.clock.ask();
    for (const { result } of results) {
      expect(Math.abs(result.finished_at - now)).toBeLessThan(60_000);
      expect(result.seconds.queued).toBeLessThan(60);
      expect(result.seconds.queued).toBeGreaterThanOrEqual(0);
    }
  },
);
