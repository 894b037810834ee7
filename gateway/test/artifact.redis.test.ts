/** A store that fails while an artifact is read: no judged rollout is lost, and none becomes a failure of the row. */
import type { Farm } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { testGateway } from './gateway.ts';
import { post, row } from './gym.ts';
import { type Ending, judged, startPlayer, withheld } from './player.ts';

/** Fails the first `count` reads of artifacts. */
const stale =
  (count: number) =>
  (farm: Farm): Farm => {
    let left = count;
    const read: Farm['artifacts']['read'] = async (ref) => {
      if (left-- > 0) throw new Error('ESTALE: stale file handle, open');
      return await farm.artifacts.read(ref);
    };
    return { ...farm, artifacts: { ...farm.artifacts, read } };
  };

async function answers(ending: Ending, failing: number, gateway_mask_sample: 'honoured' | 'ignored') {
  const { url, farm } = await testGateway({ gateway_mask_sample }, {}, stale(failing));
  const { seen } = startPlayer(farm, () => ending);
  const reply = await post(url, row({ _rowidx: 0 }));
  const { error, reward } = (await reply.json()) as { error?: { code: string }; reward?: number };
  return { status: reply.status, output: error?.code ?? reward, seen: seen.length };
}

test('an artifact read is retried twice, and the rollout does not run again', async () => {
  expect(await answers(judged(1), 2, 'ignored')).toEqual({ status: 200, output: 1, seen: 1 });
});

test('an unreadable artifact is an infrastructure failure if the trainer needs it', async () => {
  const unreadable = { status: 503, output: 'artifact_unreadable', seen: 1 };
  expect(await answers(judged(0), 3, 'ignored')).toEqual(unreadable);
  expect(await answers(withheld, 3, 'honoured')).toEqual(unreadable);
  // The trainer accepts no masked sample, so the answer is a refusal anyway.
  expect(await answers(withheld, 3, 'ignored')).toEqual({ status: 422, output: 'no_reward', seen: 1 });
});
