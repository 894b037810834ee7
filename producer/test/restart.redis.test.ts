/** Tests that a gateway that is killed with open calls is replaced by a gateway at the same address, which answers the calls. */

import { bearer, TOKEN } from '@swefarm/gateway/test/gateway.ts';
import { type Reply, row } from '@swefarm/gateway/test/gym.ts';
import { testConfig, testFarm, testFolder } from '@swefarm/runs/test/farm.ts';
import { type Farm, freePort } from '@swefarm/shared';
import { until } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, onTestFinished, test } from 'vitest';
import { start } from './cli.ts';

const CALLS = 24;

/** Posts as Gym's client does: repeats the request after half a second, without a limit, when it fails before the headers arrive. */
async function insist(url: string, body: unknown): Promise<Reply> {
  for (;;) {
    try {
      const reply = await fetch(`${url}/run`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...bearer() },
        body: JSON.stringify(body),
      });
      expect(reply.status).toBe(200);
      return (await reply.json()) as Reply;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

const open = async (farm: Farm): Promise<string[]> =>
  (await Promise.all((await farm.runs.list()).map(({ run_id }) => farm.groups.rollouts(run_id)))).flat();

test.each(['SIGKILL', 'SIGTERM'] as const)('%s of the gateway doubles no rollout', async (signal) => {
  const config = testConfig();
  const farm = await testFarm(config);
  const state = await testFolder();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const serve = () => {
    const flags = ['--port', String(port), '--redis-prefix', config.redis_prefix, '--state-dir', state];
    const running = start(['serve', ...flags, '--redis-url', config.redis_url?.reveal() ?? ''], {
      SWEFARM_GATEWAY_TOKEN: TOKEN,
    });
    onTestFinished(() => void running.child.kill('SIGKILL'));
    return running;
  };
  const first = serve();
  // Pairs of identical siblings.
  const replies = Promise.all(
    Array.from({ length: CALLS }, (_, index) => insist(url, row({ _ng_rollout_index: index >> 1 }))),
  );
  await until(async () => (await farm.calls.count()).connected === CALLS);
  const before = await open(farm);
  first.child.kill(signal);
  await first.ended;
  // A trainer updates its weights meanwhile.
  await farm.policies.set('default', { version: 'step-2', state: 'serving' });
  serve();
  // All calls are connected to the new gateway.
  await until(async () => {
    const isHealthy = await fetch(`${url}/healthz`).then(
      () => true,
      () => false,
    );
    const { connected: calls, orphaned } = await farm.calls.count();
    return isHealthy && calls === CALLS && orphaned === 0;
  });
  for (const id of before) {
    const run = await farm.runs.get(id.slice(0, id.indexOf('.')));
    if (run) await commitRollout(farm, run, id);
  }
  expect((await replies).map((reply) => reply.rollout_id).toSorted()).toEqual(before.toSorted());
  expect(await open(farm)).toHaveLength(CALLS);
});
