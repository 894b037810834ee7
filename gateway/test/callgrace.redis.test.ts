/** Lifetimes of a call: its name, its deadline, and the grace after a lost connection. */
import { until } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { post, row } from './gym.ts';
import { failed, judged } from './player.ts';
import { gate, startTrainer } from './trainer.ts';

test('an id that got 503 runs again, and is remembered once it is judged', async () => {
  const { player, send } = await startTrainer((nth) =>
    nth === 0 ? failed('policy_unreachable') : judged(1),
  );
  const body = row({ _rowidx: 0, _ng_rollout_id: 'step-1.r0' });
  const statuses = [await send(body), await send(body), await send(body)];
  expect(statuses.map(({ status }) => status)).toEqual([503, 200, 200]);
  expect(new Set(statuses.slice(1).map(({ text }) => JSON.parse(text).rollout_id)).size).toBe(1);
  expect(player.seen).toHaveLength(2);
});

test('a rollout past the deadline of its row is cancelled, counted from the first request', async () => {
  const never = gate();
  const { url, farm, player } = await startTrainer(never.resolved);
  const body = row({ _rowidx: 0, rollout_timeout_s: 10 });
  const cut = new AbortController();
  const begun = performance.now();
  const lost = post(url, body, { signal: cut.signal });
  await until(async () => player.seen.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  cut.abort();
  await lost.catch(() => undefined);
  await until(async () => (await farm.calls.count()).orphaned === 1);
  const reply = await post(url, body);
  expect(performance.now() - begun).toBeLessThan(14_900);
  expect([reply.status, await reply.json()]).toMatchObject([
    503,
    { error: { code: 'hold_expired', message: expect.stringContaining('rollout_timeout_s') } },
  ]);
  const [id = ''] = player.seen;
  expect((await farm.cancel.isCancelled([id])).get(id)).toBe('deadline');
  expect(player.seen).toHaveLength(1);
  never.open();
});

test('a collector that returns after the grace of trainers finds all its rollouts', async () => {
  const rest = gate();
  const grace = { gateway_grace_seconds: 0.2, gateway_collector_grace_seconds: 60 };
  const { url, farm, player } = await startTrainer(rest.resolved, grace);
  const rows = Array.from({ length: 40 }, (_, at) => row({ _ng_task_index: at, _ng_rollout_index: 0 }));
  const cut = new AbortController();
  const signal = cut.signal;
  const lost = [...rows, row({ _rowidx: 0 })].map((body) => post(url, body, { signal }));
  await until(async () => player.seen.length === 41);
  cut.abort();
  await Promise.allSettled(lost);
  // The trainer's rollout is cancelled after its shorter grace.
  await until(async () => (await farm.calls.count()).orphaned === 40);
  const again = rows.map((body) => post(url, body));
  await until(async () => (await farm.calls.count()).connected === 40);
  rest.open();
  const replies = await Promise.all(again);
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  expect(player.seen).toHaveLength(41);
});
