/** A trainer for tests: a gateway, a worker whose outcomes the test decides, and requests. */
import type { Post } from '@swefarm/testkit';
import { testGateway } from './gateway.ts';
import { post } from './gym.ts';
import { type Decide, startPlayer } from './player.ts';

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
export function gate(): { open: () => void; opened: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { open: resolve, opened: promise };
}
