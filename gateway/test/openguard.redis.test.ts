/** Open runs have the checks of submitted training runs: probe, counts of unread calls, pause. */

import { startSoftmax } from '@swefarm/runs/test/softmax.ts';
import { until } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { testGateway } from './gateway.ts';
import { post, row } from './gym.ts';
import { judged, startPlayer } from './player.ts';
import { startTrainer } from './trainer.ts';

const UNREAD = { answers: 3, marker: '<tool_call>' };

test('endpoints are probed once for all gateways, in the background; answers show the findings', async () => {
  const server = await startSoftmax({ logprobs: 'raw', spread: 2 });
  const settings = { policy: { token_mode: 'token-in', sampling: { max_tokens: 16 } } };
  const { url, farm, config } = await testGateway({}, settings);
  const second = await testGateway({ redis_prefix: config.redis_prefix }, settings);
  startPlayer(farm, () => ({ ...judged(0), unread_calls: UNREAD }));
  let rows = 0;
  const call = async (at: string) => {
    const asked = row({ _rowidx: rows++, policy_base_url: server.url, temperature: 1 });
    return (await (await post(at, asked)).json()) as Record<string, unknown>;
  };
  const first = await Promise.all([call(url), call(second.url), call(url), call(second.url)]);
  for (const answer of first) expect(answer).toMatchObject({ reward: 0, unread_calls: { '<tool_call>': 3 } });
  const found = async () => (await call(second.url)).policy_probe;
  await until(async () => (await found()) !== null);
  expect(await found()).toMatchObject({ logprobs: 'raw' });
  const [begun] = server.bodies;
  expect(server.bodies.filter((body) => JSON.stringify(body) === JSON.stringify(begun))).toHaveLength(1);
});

test('an unreachable endpoint delays no call', async () => {
  const { send, player } = await startTrainer(() => judged(1));
  expect(await send(row({ _rowidx: 0 }))).toMatchObject({ status: 200 });
  expect(player.seen).toHaveLength(1);
});

test('calls of a paused open run get 503 until the pause ends; other callers run', async () => {
  const { url, farm, send } = await startTrainer(() => judged(1));
  const first = JSON.parse((await send(row({ _rowidx: 0 }))).text) as { rollout_id: string };
  const run = first.rollout_id.slice(0, first.rollout_id.indexOf('.'));
  const reason = 'the tool calls of 60 of 60 answers could not be read (<tool_call> 60): name the form';
  expect(await farm.groups.pause(run, reason, null, 3_000)).toBe(true);
  const refused = await post(url, row({ _rowidx: 1 }));
  expect(refused.status).toBe(503);
  expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(3);
  expect(await refused.json()).toMatchObject({
    error: { code: 'calls_unread', message: expect.stringContaining(reason) },
  });
  // Another endpoint has another run.
  expect(await send(row({ _rowidx: 2, policy_base_url: 'http://127.0.0.1:8/v1' }))).toMatchObject({
    status: 200,
  });
  await until(async () => (await send(row({ _rowidx: 3 }))).status === 200);
  expect(await farm.groups.paused(run)).toMatchObject({ reason: null, since: { committed: 1 } });
});
