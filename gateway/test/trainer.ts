/** A trainer for tests: a gateway, a worker whose outcomes the test decides, and requests. */
import type { Post, singleController } from '@swefarm/testkit';
import { testGateway } from './gateway.ts';
import { post } from './gym.ts';
import { type Decide, failed, judged, startPlayer } from './player.ts';

/** Starts a gateway and a worker that ends rollouts by `decide`. `statuses`: of all answers to `send`, in order. */
export async function startTrainer(decide: Decide, over: Parameters<typeof testGateway>[0] = {}) {
  const { url, farm } = await testGateway(over);
  const player = startPlayer(farm, decide);
  const statuses: number[] = [];
  const send: Post = async (body) => {
    const reply = await post(url, body);
    statuses.push(reply.status);
    return { status: reply.status, text: await reply.text() };
  };
  return { url, farm, player, send, statuses };
}

/** A barrier that a test opens for running rollouts. */
export function gate() {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const resolved: Decide = async () => {
    await opened;
    return judged(1);
  };
  /** The first rollout fails immediately. */
  const firstFails = (first = failed('policy_unreachable')): Decide => {
    return (nth, id) => (nth === 0 ? first : resolved(nth, id));
  };
  return { open, opened, resolved, firstFails };
}

/** Returns the samples of a group, which must be committed. */
export function committed(group: Awaited<ReturnType<typeof singleController>>) {
  if (group.end !== 'committed') throw new Error(group.end);
  return group.samples;
}

export const idsOf = (samples: readonly { text: string }[]): string[] =>
  samples.map(({ text }) => (JSON.parse(text) as { rollout_id: string }).rollout_id);
