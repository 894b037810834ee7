/** The gateway under NeMo RL's own ways of asking: as few rollouts as can be, and nothing trained as 0 that was not judged. */
import { asyncCollector, type Post, singleController, weightOf } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { until } from '../cli.ts';
import { testGateway } from './gateway.ts';
import { post, row } from './gym.ts';
import { type Decide, failed, judged, startPlayer, withheld } from './player.ts';

type Over = Parameters<typeof testGateway>[0];

/** A gateway, a worker that ends rollouts as `decide` says, and what a trainer posts. */
async function trained(decide: Decide, over: Over = {}) {
  const { url, farm } = await testGateway(over);
  const player = startPlayer(farm, decide);
  const told: number[] = [];
  const send: Post = async (body) => {
    const reply = await post(url, body);
    told.push(reply.status);
    return { status: reply.status, text: await reply.text() };
  };
  return { url, farm, player, send, told };
}

/** Opened by a test when what runs may end. */
function gate(): { open: () => void; opened: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { open: resolve, opened: promise };
}

const rewards = (samples: readonly { reward: number | null }[]): (number | null)[] =>
  samples.map(({ reward }) => reward);

test('a group of 4 with one failure runs 5 rollouts: its 503 comes after the answers of its siblings', async () => {
  const rest = gate();
  const { player, send, told } = await trained(async (nth) => {
    if (nth === 1) return failed('policy_unauthorized');
    if (nth < 4) await rest.opened;
    return judged(1);
  });
  const asked = singleController(row(), 4, send);
  await until(async () => player.seen.length === 4);
  // Time in which the failure could have been told.
  await new Promise((resolve) => setTimeout(resolve, 700));
  expect(told).toEqual([]);
  rest.open();
  const group = await asked;
  if (group.end !== 'committed') throw new Error(group.end);
  expect(rewards(group.samples)).toEqual([1, 1, 1, 1]);
  expect(told).toEqual([200, 200, 200, 503, 200]);
  expect(player.seen).toHaveLength(5);
});

test('weights that move while a group is under way cost no rollout; an equal row after its answer is a new one', async () => {
  const rest = gate();
  const back = gate();
  const { url, farm, player, send, told } = await trained(
    async (nth) => {
      if (nth === 0) return failed('policy_unreachable');
      if (nth < 5) await rest.opened;
      if (nth === 5) await back.opened;
      return judged(1);
    },
    { gateway_group_hold_seconds: 0.3 },
  );
  const lost = new AbortController();
  const asked = singleController(row(), 4, send);
  await until(async () => player.seen.length === 4);
  await post(url, { version: 'step-2', state: 'serving' }, { path: '/policy', method: 'PUT' });
  await until(async () => told.filter((status) => status === 503).length === 4);
  await until(async () => player.seen.length >= 5);
  // One that lost its connection in one step is found in the next.
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
  const found = (await (await again).json()) as { rollout_id: string };
  expect(found.rollout_id).toBe(player.seen[5]);
  rest.open();
  const group = await asked;
  if (group.end !== 'committed') throw new Error(group.end);
  expect(player.seen).toHaveLength(6);
  // The next epoch: what was answered is given to nobody again.
  const next = await singleController(row(), 4, send);
  if (next.end !== 'committed') throw new Error(next.end);
  const ids = [...group.samples, ...next.samples].map(
    ({ text }) => (JSON.parse(text) as { rollout_id: string }).rollout_id,
  );
  expect(new Set(ids).size).toBe(8);
  expect(player.seen).toHaveLength(10);
});

test('a row that nobody sent again within the grace is not given to an equal row of a later step', async () => {
  const rest = gate();
  const { player, send, told } = await trained(
    async (nth) => {
      if (nth === 0) return failed('policy_unreachable');
      await rest.opened;
      return judged(1);
    },
    { gateway_group_hold_seconds: 0.1, gateway_grace_seconds: 0.1 },
  );
  // A stream that ends at its first failure, and is given up.
  const stale = [0, 1].map((index) => send(row({ _rowidx: index })));
  await until(async () => told.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const later = send(row({ _rowidx: 1 }));
  const other = send(row({ _rowidx: 0 }));
  await until(async () => player.seen.length === 4);
  rest.open();
  const texts = (await Promise.all([...stale, later, other])).map(({ text }) => JSON.parse(text));
  const ids = texts.flatMap(({ rollout_id }) => rollout_id ?? []);
  expect(new Set(ids).size).toBe(3);
});

test('a row that is refused for any reason ends the stream too: its siblings are taken up when they are sent again', async () => {
  const rest = gate();
  const { player, send, told } = await trained(
    async () => {
      await rest.opened;
      return judged(1);
    },
    { gateway_max_in_flight: 2 },
  );
  const old = [0, 1].map((index) => send(row({ _rowidx: index })));
  await until(async () => player.seen.length === 2);
  expect(await send(row({ _rowidx: 2 }))).toMatchObject({ status: 429 });
  const again = [0, 1].map((index) => send(row({ _rowidx: index })));
  await until(async () => told.filter((status) => status === 503).length === 2);
  rest.open();
  expect((await Promise.all(again)).map(({ status }) => status)).toEqual([200, 200]);
  for (const { text } of await Promise.all(old)) expect(text).toContain('taken_up');
  expect(player.seen).toHaveLength(2);
});

test('siblings that run for too long are not waited for, and rows that are sent again take up their rollouts', async () => {
  const rest = gate();
  const at = await trained(
    async (nth) => {
      if (nth === 0) return failed('policy_unreachable');
      await rest.opened;
      return judged(1);
    },
    { gateway_group_hold_seconds: 0.3 },
  );
  const asked = singleController(row(), 4, at.send);
  // The old connections are told that others have their rollouts; nobody reads them.
  await until(async () => at.told.filter((status) => status === 503).length === 4);
  await until(async () => at.player.seen.length === 5);
  rest.open();
  const group = await asked;
  if (group.end !== 'committed') throw new Error(group.end);
  const ids = group.samples.map(({ text }) => (JSON.parse(text) as { rollout_id: string }).rollout_id);
  expect(new Set(ids).size).toBe(4);
  expect(rewards(group.samples)).toEqual([1, 1, 1, 1]);
  expect(at.player.seen).toHaveLength(5);
  expect(await at.farm.calls.count()).toEqual({ held: 0, orphaned: 0 });
});

test('two groups of one prompt at once never share a rollout, whichever of them fails', async () => {
  const rest = gate();
  const { player, send } = await trained(
    async (nth) => {
      if (nth === 0) return failed('sandbox_lost', 'sandbox');
      await rest.opened;
      return judged(1);
    },
    { gateway_group_hold_seconds: 0.3 },
  );
  const asked = [singleController(row(), 3, send), singleController(row(), 3, send)];
  await until(async () => player.seen.length >= 7);
  rest.open();
  const groups = await Promise.all(asked);
  const samples = groups.flatMap((group) => (group.end === 'committed' ? group.samples : []));
  const ids = samples.map(({ text }) => (JSON.parse(text) as { rollout_id: string }).rollout_id);
  expect(samples).toHaveLength(6);
  expect(new Set(ids).size).toBe(6);
  expect(player.seen).toHaveLength(7);
});

test('the asynchronous collector: a failure among 12 costs one rollout, not the batch', async () => {
  const { player, send, told } = await trained((nth) =>
    nth === 5 ? failed('policy_unreachable') : judged(nth % 2 === 0 ? 1 : 0),
  );
  const prompts = [0, 1, 2].map((at) => row({ instance_id: `a__b-${at}` }));
  const groups = await asyncCollector(prompts, 4, send, 1);
  expect(groups.map((group) => group.length)).toEqual([4, 4, 4]);
  expect(told).toEqual(Array.from({ length: 12 }, () => 200));
  expect(player.seen).toHaveLength(13);
});

test.each(['image_not_found', 'tests_cannot_start', 'policy_bad_request', 'policy_tokens'] as const)(
  '%s would end so again: 422 at once, within the budget for bad prompts, and no call is held for it',
  async (name) => {
    const { player, send } = await trained(() => failed(name, 'instance'));
    const told = new Set<string>();
    const heard: Post = async (body) => {
      const reply = await send(body);
      told.add(`${reply.status} ${JSON.parse(reply.text).error.code}`);
      return reply;
    };
    expect(await singleController(row(), 4, heard, { skippedPrompts: 1 })).toEqual({ end: 'skipped' });
    // Of the first attempt's connections, which nobody reads then, those whose rollouts the second took up.
    told.delete('503 taken_up');
    expect(told).toEqual(new Set([`422 ${name}`]));
    // Two attempts at the prompt, and what the second took up of the first.
    expect(player.seen.length).toBeLessThanOrEqual(8);
  },
);

test('a synchronous trainer hears of a broken instance at once too', async () => {
  const { player, send } = await trained(() => failed('image_not_found', 'image'), {
    gateway_failures: 'nemo-rl-sync',
  });
  expect(await send(row({ _rowidx: 0 }))).toMatchObject({ status: 422 });
  expect(player.seen).toHaveLength(1);
});

test('no reward by intention: a trainer that ignores masks drops the prompt, and trains on no 0 that was not judged', async () => {
  const decide: Decide = (nth) => (nth % 4 === 2 ? withheld : judged(1));
  const { send, told } = await trained(decide);
  const group = await singleController(row(), 4, send, { skippedPrompts: 1, dataAttempts: 1 });
  expect(group).toEqual({ end: 'skipped' });
  expect(told).toContain(422);
  // Without that budget it ends, and is told what to do.
  const strict = await trained(() => withheld);
  expect(await singleController(row(), 4, strict.send)).toMatchObject({
    end: 'raised',
    what: expect.stringContaining('mask_sample: honoured'),
  });
  // What it would do with a masked answer, which is why it is not given one.
  const honouring = await trained(decide, { gateway_mask_sample: 'honoured' });
  const masked = await singleController(row(), 4, honouring.send);
  if (masked.end !== 'committed') throw new Error(masked.end);
  expect(honouring.told).toEqual([200, 200, 200, 200]);
  expect(honouring.player.seen).toHaveLength(4);
  const [sample, ...others] = masked.samples.toSorted((a, b) => Number(b.masked) - Number(a.masked));
  if (!sample) throw new Error('no sample');
  expect(sample).toMatchObject({ masked: true, reward: 0, trainedTurns: 2 });
  expect(others.map((other) => other.masked)).toEqual([false, false, false]);
  expect(weightOf(sample, false)).toEqual({ loss: 1, inBaseline: true });
  expect(weightOf(sample, true)).toEqual({ loss: 0, inBaseline: false });
});

test('an id that was told 503 is run again, and remembered once it was judged', async () => {
  const { player, send } = await trained((nth) => (nth === 0 ? failed('policy_unreachable') : judged(1)));
  const body = row({ _rowidx: 0, _ng_rollout_id: 'step-1.r0' });
  const told = [await send(body), await send(body), await send(body)];
  expect(told.map(({ status }) => status)).toEqual([503, 200, 200]);
  expect(new Set(told.slice(1).map(({ text }) => JSON.parse(text).rollout_id)).size).toBe(1);
  expect(player.seen).toHaveLength(2);
});

test('a rollout past the deadline of its row is cancelled, counted from when it was first asked for', async () => {
  const never = gate();
  const { url, farm, player } = await trained(async () => {
    await never.opened;
    return judged(1);
  });
  const body = row({ _rowidx: 0, rollout_timeout_s: 3 });
  const cut = new AbortController();
  const begun = performance.now();
  const lost = post(url, body, { signal: cut.signal });
  await until(async () => player.seen.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  cut.abort();
  await lost.catch(() => undefined);
  await until(async () => (await farm.calls.count()).orphaned === 1);
  const reply = await post(url, body);
  expect(performance.now() - begun).toBeLessThan(4_400);
  expect([reply.status, await reply.json()]).toMatchObject([
    503,
    { error: { code: 'hold_expired', message: expect.stringContaining('rollout_timeout_s') } },
  ]);
  const [id = ''] = player.seen;
  expect((await farm.cancel.isCancelled([id])).get(id)).toBe('deadline');
  expect(player.seen).toHaveLength(1);
  never.open();
});

test('a collector that comes back after the grace of trainers finds all its rollouts', async () => {
  const rest = gate();
  const { url, farm, player } = await trained(
    async () => {
      await rest.opened;
      return judged(1);
    },
    { gateway_grace_seconds: 0.2, gateway_collector_grace_seconds: 60 },
  );
  const rows = Array.from({ length: 40 }, (_, at) => row({ _ng_task_index: at, _ng_rollout_index: 0 }));
  const cut = new AbortController();
  const signal = cut.signal;
  const lost = [...rows, row({ _rowidx: 0 })].map((body) => post(url, body, { signal }));
  await until(async () => player.seen.length === 41);
  cut.abort();
  await Promise.allSettled(lost);
  // The trainer's is cancelled when its grace is over; by then the collector would have lost its own.
  await until(async () => (await farm.calls.count()).orphaned === 40);
  const again = rows.map((body) => post(url, body));
  await until(async () => (await farm.calls.count()).held === 40);
  rest.open();
  const replies = await Promise.all(again);
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  expect(player.seen).toHaveLength(41);
});
