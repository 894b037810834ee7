/** Short outages of Redis during hundreds of posts: each row has one rollout, also if it is posted again. */

import { redisUrl, testConfig, testFarm } from '@swefarm/runs/test/farm.ts';
import { type Farm, Secret } from '@swefarm/shared';
import { startFaultProxy, startRedis, until } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, onTestFinished, test } from 'vitest';
import { bearer, testGateway } from './gateway.ts';
import { post, type Reply, row } from './gym.ts';

const opened = async (farm: Farm): Promise<string[]> =>
  (await Promise.all((await farm.runs.list()).map(({ run_id }) => farm.groups.rollouts(run_id)))).flat();

const queued = async (farm: Farm): Promise<string[]> =>
  (await farm.queue().getJobs(['prioritized', 'waiting'])).flatMap((job) => (job.id ? [job.id] : []));

async function finish(farm: Farm): Promise<void> {
  for (const id of await queued(farm)) {
    const run = await farm.runs.get(id.slice(0, id.indexOf('.')));
    if (run) await commitRollout(farm, run, id);
  }
}

test('a repeated request takes over a rollout whose job could not be queued', async () => {
  const server = await startRedis();
  onTestFinished(() => server[Symbol.asyncDispose]());
  await server.cli('ACL', 'SETUSER', 'gw', 'on', '>gw-password', '~*', '+@all');
  const { farm, ...at } = await testGateway({
    redis_url: new Secret(server.url),
    redis_username: 'gw',
    redis_password: new Secret('gw-password'),
  });
  const prefix = at.config.redis_prefix;
  const rows = Array.from({ length: 8 }, (_, index) => row({ _ng_rollout_index: index >> 1 }));
  // Only the job is missing.
  const but = ['run:*', 'runs', 'calls:*', 'unfinished', 'policies', 'cancel-epoch'].map(
    (key) => `~${prefix}:${key}`,
  );
  await server.cli('ACL', 'SETUSER', 'gw', 'resetkeys', '%R~*', ...but);
  const refused = await Promise.all(rows.map((one) => post(at.url, one)));
  expect(refused.map(({ status }) => status)).toEqual(rows.map(() => 503));
  const before = await opened(farm);
  expect(before).toHaveLength(8);
  await server.cli('ACL', 'SETUSER', 'gw', 'allkeys');
  const asked = rows.map((one) => post(at.url, one));
  await until(async () => (await queued(farm)).length === 8);
  await finish(farm);
  const replies = await Promise.all(asked.map(async (one) => (await one).json() as Promise<Reply>));
  expect(replies.map(({ rollout_id }) => rollout_id).toSorted()).toEqual(before.toSorted());
  expect(await opened(farm)).toHaveLength(8);
  expect(await farm.calls.count()).toEqual({ connected: 0, orphaned: 0 });
});

test('a post makes one rollout although connections to Redis break at any moment', async () => {
  const proxy = await startFaultProxy({ target: redisUrl() });
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const direct = testConfig();
  const farm = await testFarm(direct);
  const { url } = await testGateway({
    redis_url: new Secret(proxy.url),
    redis_prefix: direct.redis_prefix,
    gateway_grace_seconds: 120,
  });
  const ROWS = 48;
  let done = 0;
  // Gym's client repeats the request after every error.
  const insist = async (body: unknown): Promise<string> => {
    for (;;) {
      const reply = await fetch(`${url}/run`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...bearer() },
        body: JSON.stringify(body),
      }).catch(() => null);
      if (reply?.status === 200) {
        done++;
        return ((await reply.json()) as Reply).rollout_id;
      }
      await reply?.body?.cancel();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  const asked = Promise.all(
    Array.from({ length: ROWS }, (_, index) => insist(row({ _ng_rollout_index: index >> 1 }))),
  );
  for (const bytes of [200, 900, 50, 3000, 400, 120, 1500, 700]) {
    proxy.cutAfter(bytes);
    await new Promise((resolve) => setTimeout(resolve, 60));
    proxy.cut();
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  await until(async () => (await farm.calls.count()).connected === ROWS);
  await until(async () => (await queued(farm)).length >= ROWS);
  while (done < ROWS) {
    await finish(farm);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(new Set(await asked).size).toBe(ROWS);
  expect(await opened(farm)).toHaveLength(ROWS);
});
