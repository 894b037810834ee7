/** Short outages of Redis during hundreds of posts: each row has one rollout, also if it is posted again. */

import { redisUrl, testConfig, testFarm } from '@swefarm/runs/test/farm.ts';
import { type Farm, Secret } from '@swefarm/shared';
import { startFaultProxy, until } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { gatewayWithUser, testGateway } from './gateway.ts';
import { finish, post, queued, rolloutOf, row, untilQueued } from './gym.ts';

const opened = async (farm: Farm): Promise<string[]> =>
  (await Promise.all((await farm.runs.list()).map(({ run_id }) => farm.groups.rollouts(run_id)))).flat();

test('a repeated request takes over a rollout whose job could not be queued', async () => {
  const { farm, allow, ...at } = await gatewayWithUser();
  const prefix = at.config.redis_prefix;
  const rows = Array.from({ length: 8 }, (_, index) => row({ _ng_rollout_index: index >> 1 }));
  // The gateway may write the keys of calls and runs but not those of the queue, so only the job is missing.
  const but = ['run:*', 'runs', 'calls:*', 'unfinished', 'policies', 'cancel-epoch'].map(
    (key) => `~${prefix}:${key}`,
  );
  await allow('resetkeys', '%R~*', ...but);
  const refused = await Promise.all(rows.map((one) => post(at.url, one)));
  expect(refused.map(({ status }) => status)).toEqual(rows.map(() => 503));
  const before = await opened(farm);
  expect(before).toHaveLength(8);
  await allow('allkeys');
  const asked = rows.map((one) => post(at.url, one));
  await untilQueued(farm, 8);
  await finish(farm);
  expect((await Promise.all(asked.map(rolloutOf))).toSorted()).toEqual(before.toSorted());
  expect(await opened(farm)).toHaveLength(8);
  expect(await farm.calls.count()).toEqual({ connected: 0, orphaned: 0 });
});

test('a gateway that could not register at its start refuses posts, and registers later', async () => {
  const { url, farm, allow } = await gatewayWithUser((prefix) => ['%R~*', `~${prefix}:[^c]*`]);
  const body = row({ _ng_rollout_index: 0 });
  const refused = await post(url, body);
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({ error: { code: 'redis_auth' } });
  await allow('allkeys');
  const reply = post(url, body);
  await untilQueued(farm, 1);
  await finish(farm);
  expect((await reply).status).toBe(200);
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
      const reply = await post(url, body).catch(() => null);
      if (reply?.status === 200) {
        done++;
        return await rolloutOf(reply);
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
