/** Rows of one prompt whose answers a trainer reads as one stream: a failure costs one rollout. */
import { singleController, until } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { post, rolloutOf, row } from './gym.ts';
import { failed, judged } from './player.ts';
import { committed, gate, idsOf, startTrainer } from './trainer.ts';

const rewards = (samples: readonly { reward: number | null }[]): (number | null)[] =>
  samples.map(({ reward }) => reward);

test('a group of 4 with one failure runs 5 rollouts, and answers its siblings before the 503', async () => {
  const rest = gate();
  const { player, send, statuses } = await startTrainer(async (nth) => {
    if (nth === 1) return failed('policy_unauthorized');
    if (nth < 4) await rest.opened;
    return judged(1);
  });
  const asked = singleController(row(), 4, send);
  await until(async () => player.seen.length === 4);
  // A premature answer to the failed call would arrive within this time.
  await new Promise((resolve) => setTimeout(resolve, 700));
  expect(statuses).toEqual([]);
  rest.open();
  expect(rewards(committed(await asked))).toEqual([1, 1, 1, 1]);
  expect(statuses).toEqual([200, 200, 200, 503, 200]);
  expect(player.seen).toHaveLength(5);
});

test('a weight update during a group costs no rollout; an equal row after its answer is new', async () => {
  const rest = gate();
  const back = gate();
  const { url, farm, player, send, statuses } = await startTrainer(
    async (nth) => {
      if (nth === 0) return failed('policy_unreachable');
      if (nth < 5) await rest.opened;
      if (nth === 5) await back.opened;
      return judged(1);
    },
    { gateway_group_hold_seconds: 3 },
  );
  const lost = new AbortController();
  const asked = singleController(row(), 4, send);
  await until(async () => player.seen.length === 4);
  await post(url, { version: 'step-2', state: 'serving' }, { path: '/policy', method: 'PUT' });
  await until(async () => statuses.filter((status) => status === 503).length === 4);
  await until(async () => player.seen.length >= 5);
  // A call that lost its connection in one step is found in the next.
  const away = row({ _rowidx: 9 });
  const first = post(url, away, { signal: lost.signal });
  await until(async () => player.seen.length === 6);
  lost.abort();
  await first.catch(() => undefined);
  await until(async () => (await farm.calls.count()).orphaned === 1);
  await post(url, { version: 'step-3', state: 'serving' }, { path: '/policy', method: 'PUT' });
  const again = post(url, away);
  await until(async () => (await farm.calls.count()).orphaned === 0);
  back.open();
  expect(await rolloutOf(again)).toBe(player.seen[5]);
  rest.open();
  const samples = committed(await asked);
  expect(player.seen).toHaveLength(6);
  // In the next epoch, equal rows get new rollouts.
  const next = committed(await singleController(row(), 4, send));
  expect(new Set(idsOf([...samples, ...next])).size).toBe(8);
  expect(player.seen).toHaveLength(10);
});

test('an equal row of a later step does not take over a rollout after the grace', async () => {
  const rest = gate();
  const { player, send, statuses } = await startTrainer(rest.firstFails(), {
    gateway_group_hold_seconds: 2,
    gateway_grace_seconds: 0.1,
  });
  // A stream ends at its first failure and is abandoned.
  const stale = [0, 1].map((index) => send(row({ _rowidx: index })));
  await until(async () => statuses.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const later = send(row({ _rowidx: 1 }));
  const other = send(row({ _rowidx: 0 }));
  await until(async () => player.seen.length === 4);
  rest.open();
  const texts = (await Promise.all([...stale, later, other])).map(({ text }) => JSON.parse(text));
  const ids = texts.flatMap(({ rollout_id }) => rollout_id ?? []);
  expect(new Set(ids).size).toBe(3);
});

test('a refused row ends the stream too: its siblings are taken over when sent again', async () => {
  const rest = gate();
  const { player, send, statuses } = await startTrainer(rest.resolved, { gateway_max_in_flight: 2 });
  const old = [0, 1].map((index) => send(row({ _rowidx: index })));
  await until(async () => player.seen.length === 2);
  expect(await send(row({ _rowidx: 2 }))).toMatchObject({ status: 429 });
  const again = [0, 1].map((index) => send(row({ _rowidx: index })));
  await until(async () => statuses.filter((status) => status === 503).length === 2);
  rest.open();
  expect((await Promise.all(again)).map(({ status }) => status)).toEqual([200, 200]);
  for (const { text } of await Promise.all(old)) expect(text).toContain('taken_up');
  expect(player.seen).toHaveLength(2);
});

test('a failure does not wait for long siblings, and repeated rows take over their rollouts', async () => {
  const rest = gate();
  const at = await startTrainer(rest.firstFails(), { gateway_group_hold_seconds: 3 });
  const asked = singleController(row(), 4, at.send);
  // The old connections get 503, which nobody reads.
  await until(async () => at.statuses.filter((status) => status === 503).length === 4);
  await until(async () => at.player.seen.length === 5);
  rest.open();
  const samples = committed(await asked);
  expect(new Set(idsOf(samples)).size).toBe(4);
  expect(rewards(samples)).toEqual([1, 1, 1, 1]);
  expect(at.player.seen).toHaveLength(5);
  expect(await at.farm.calls.count()).toEqual({ connected: 0, orphaned: 0 });
});

test('two simultaneous groups of one prompt never share a rollout', async () => {
  const rest = gate();
  const { player, send } = await startTrainer(rest.firstFails(failed('sandbox_lost', 'sandbox')), {
    gateway_group_hold_seconds: 3,
  });
  const asked = [singleController(row(), 3, send), singleController(row(), 3, send)];
  await until(async () => player.seen.length >= 7);
  rest.open();
  const groups = await Promise.all(asked);
  const samples = groups.flatMap((group) => (group.end === 'committed' ? group.samples : []));
  expect(samples).toHaveLength(6);
  expect(new Set(idsOf(samples)).size).toBe(6);
  expect(player.seen).toHaveLength(7);
});
