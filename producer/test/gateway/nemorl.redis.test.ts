/** The gateway under NeMo RL's own ways of asking: as few rollouts as can be, and nothing trained as 0 that was not judged. */
import { asyncCollector, type Post, singleController, weightOf } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { row } from './gym.ts';
import { type Decide, failed, judged, withheld } from './player.ts';
import { startTrainer } from './trainer.ts';

test('the asynchronous collector: a failure among 12 costs one rollout, not the batch', async () => {
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
  '%s would end so again: 422 at once, within the budget for bad prompts, and no call is held for it',
  async (name) => {
    const { player, send } = await startTrainer(() => failed(name, 'instance'));
    const statuses = new Set<string>();
    const sendAndNote: Post = async (body) => {
      const reply = await send(body);
      statuses.add(`${reply.status} ${JSON.parse(reply.text).error.code}`);
      return reply;
    };
    expect(await singleController(row(), 4, sendAndNote, { skippedPrompts: 1 })).toEqual({ end: 'skipped' });
    // Of the first attempt's connections, which nobody reads then, those whose rollouts the second took up.
    statuses.delete('503 taken_up');
    expect(statuses).toEqual(new Set([`422 ${name}`]));
    // Two attempts at the prompt, and what the second took up of the first.
    expect(player.seen.length).toBeLessThanOrEqual(8);
  },
);

test('a synchronous trainer hears of a broken instance at once too', async () => {
  const { player, send } = await startTrainer(() => failed('image_not_found', 'image'), {
    gateway_failures: 'nemo-rl-sync',
  });
  expect(await send(row({ _rowidx: 0 }))).toMatchObject({ status: 422 });
  expect(player.seen).toHaveLength(1);
});

test('no reward by intention: a trainer that ignores masks drops the prompt, and trains on no 0 that was not judged', async () => {
  const decide: Decide = (nth) => (nth % 4 === 2 ? withheld : judged(1));
  const { send, statuses } = await startTrainer(decide);
  const group = await singleController(row(), 4, send, { skippedPrompts: 1, dataAttempts: 1 });
  expect(group).toEqual({ end: 'skipped' });
  expect(statuses).toContain(422);
  // Without that budget it ends, and is told what to do.
  const strict = await startTrainer(() => withheld);
  expect(await singleController(row(), 4, strict.send)).toMatchObject({
    end: 'raised',
    what: expect.stringContaining('mask_sample: honoured'),
  });
  // What it would do with a masked answer, which is why it is not given one.
  const honouring = await startTrainer(decide, { gateway_mask_sample: 'honoured' });
  const masked = await singleController(row(), 4, honouring.send);
  if (masked.end !== 'committed') throw new Error(masked.end);
  expect(honouring.statuses).toEqual([200, 200, 200, 200]);
  expect(honouring.player.seen).toHaveLength(4);
  const [sample, ...others] = masked.samples.toSorted((a, b) => Number(b.masked) - Number(a.masked));
  if (!sample) throw new Error('no sample');
  expect(sample).toMatchObject({ masked: true, reward: 0, trainedTurns: 2 });
  expect(others.map((other) => other.masked)).toEqual([false, false, false]);
  expect(weightOf(sample, false)).toEqual({ loss: 1, inBaseline: true });
  expect(weightOf(sample, true)).toEqual({ loss: 0, inBaseline: false });
});
