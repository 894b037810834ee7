/** The gateway with NeMo RL's request patterns: few rollouts, and no unjudged rollout trained as 0. */
import { sleep } from '@swefarm/shared';
import { asyncCollector, bareFacts, type Post, singleController, until, weightOf } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { row } from './gym.ts';
import { type Decide, failed, judged, withheld } from './player.ts';
import { committed, gate, startTrainer } from './trainer.ts';

test('asynchronous collector: a failure among 12 costs one rollout, not the batch', async () => {
  const { player, send, statuses } = await startTrainer((nth) =>
    nth === 5 ? failed('policy_unreachable') : judged(nth % 2 === 0 ? 1 : 0),
  );
  const prompts = [0, 1, 2].map((at) => row({ instance_id: `a__b-${at}` }));
  const groups = await asyncCollector(prompts, 4, send, 1);
  expect(groups.map((group) => group.length)).toEqual([4, 4, 4]);
  expect(statuses).toEqual(Array.from({ length: 12 }, () => 200));
  expect(player.seen).toHaveLength(13);
});

test.each(['image_not_found', 'tests_cannot_start', 'policy_bad_request', 'policy_tokens'] as const)(
  '%s is permanent: 422 immediately, within the budget for bad prompts',
  async (name) => {
    const broken = name === 'tests_cannot_start' ? { facts: bareFacts({ tests_start: false }) } : {};
    const { player, send } = await startTrainer(() => ({ ...failed(name, 'instance'), ...broken }));
    const statuses = new Set<string>();
    const sendAndNote: Post = async (body) => {
      const reply = await send(body);
      statuses.add(`${reply.status} ${JSON.parse(reply.text).error.code}`);
      return reply;
    };
    expect(await singleController(row(), 4, sendAndNote, { skippedPrompts: 1 })).toEqual({ end: 'skipped' });
    // The second attempt took over rollouts of the first, whose connections got this refusal.
    statuses.delete('503 taken_up');
    expect(statuses).toEqual(new Set([`422 ${name}`]));
    // Two attempts at the prompt; the second takes over rollouts of the first.
    expect(player.seen.length).toBeLessThanOrEqual(8);
  },
);

test.each(['tests_cannot_start', 'parser_failed', 'evaluation_timeout'] as const)(
  '%s without evidence against the instance drops no prompt: another rollout is judged',
  async (name) => {
    const { player, send, statuses } = await startTrainer((nth) =>
      nth === 1 ? failed(name, 'instance') : judged(0),
    );
    const group = await singleController(row(), 4, send);
    expect(group).toMatchObject({ end: 'committed' });
    expect(statuses).not.toContain(422);
    expect(player.seen).toHaveLength(5);
  },
);

test('a synchronous trainer gets the failure of a broken instance immediately', async () => {
  const { player, send } = await startTrainer(() => failed('image_not_found', 'image'), {
    gateway_failures: 'nemo-rl-sync',
  });
  expect(await send(row({ _rowidx: 0 }))).toMatchObject({ status: 422 });
  expect(player.seen).toHaveLength(1);
});

test('a trainer that ignores masks drops a prompt whose reward is withheld', async () => {
  const decide: Decide = (nth) => (nth % 4 === 2 ? withheld : judged(1));
  const { send, statuses } = await startTrainer(decide);
  const group = await singleController(row(), 4, send, { skippedPrompts: 1, dataAttempts: 1 });
  expect(group).toEqual({ end: 'skipped' });
  expect(statuses).toContain(422);
  // Without a budget for bad prompts, the step ends with an error that names the remedy.
  const strict = await startTrainer(() => withheld);
  expect(await singleController(row(), 4, strict.send)).toMatchObject({
    end: 'raised',
    what: expect.stringContaining('mask_sample: honoured'),
  });
  // A trainer that honours masks gets the rollout as a masked sample.
  const honouring = await startTrainer(decide, { gateway_mask_sample: 'honoured' });
  const masked = committed(await singleController(row(), 4, honouring.send));
  expect(honouring.statuses).toEqual([200, 200, 200, 200]);
  expect(honouring.player.seen).toHaveLength(4);
  const [sample, ...others] = masked.toSorted((a, b) => Number(b.masked) - Number(a.masked));
  if (!sample) throw new Error('no sample');
  expect(sample).toMatchObject({ masked: true, reward: 0, trainedTurns: 2 });
  expect(others.map((other) => other.masked)).toEqual([false, false, false]);
  expect(weightOf(sample, false)).toEqual({ loss: 1, inBaseline: true });
  expect(weightOf(sample, true)).toEqual({ loss: 0, inBaseline: false });
});

test('asynchronous collector: rows that are sent again take over their rollouts', async () => {
  const rest = gate();
  const { player, send } = await startTrainer(
    (nth, id) => (id.includes('broken') ? failed('image_not_found', 'image') : rest.resolved(nth, id)),
    { gateway_failures: 'nemo-rl-sync' },
  );
  const prompts = ['a__b-0', 'broken__b-1', 'a__b-2'].map((instance_id) => row({ instance_id }));
  let sent = 0;
  const sendAndNote: Post = async (body) => {
    // Rollouts of intact prompts end after all 12 rows were sent four times.
    if (++sent === 48) setTimeout(rest.open, 500);
    return await send(body);
  };
  await expect(asyncCollector(prompts, 4, sendAndNote, 3)).rejects.toThrow(/image_not_found/);
  await until(() => sent === 48);
  expect(player.seen.filter((id) => !id.includes('broken'))).toHaveLength(8);
});

test('a rollout judged after the 422 of its sibling answers its row when it is sent again', async () => {
  const { player, send, statuses } = await startTrainer(async (nth) => {
    if (nth === 0) return failed('policy_tokens');
    await sleep(nth === 1 ? 300 : 0);
    return judged(1);
  });
  let sent = 0;
  const late: Post = async (body) => {
    if (++sent > 2) await sleep(1_000);
    return await send(body);
  };
  committed(await singleController(row(), 2, late));
  expect(player.seen).toHaveLength(3);
  expect(statuses.toSorted()).toEqual([200, 200, 422, 503]);
});

test.each([
  ['larger', 4, 4],
  ['smaller', 2.5, 8],
])(
  'rollout_timeout_s slightly %s than the deadline of NeMo RL: %s s, %i rollouts',
  async (_, seconds, rollouts) => {
    const { player, send, farm } = await startTrainer(async () => await new Promise<never>(() => undefined));
    const asked = row({ rollout_timeout_s: seconds });
    const group = await singleController(asked, 2, send, { deadlineMs: 3_300, infraAttempts: 2 });
    expect(group.end).toBe('raised');
    await until(async () => (await farm.cancel.isCancelled([...player.seen])).size === player.seen.length);
    expect(player.seen).toHaveLength(rollouts);
  },
);
