/** What tests need to play a trainer: a gateway, a worker whose outcomes they decide, and what the trainer posts. */
import type { Post } from '@swefarm/testkit';
import { testGateway } from './gateway.ts';
import { post } from './gym.ts';
import { type Decide, startPlayer } from './player.ts';

/** A gateway and a worker that ends rollouts as `decide` says; `statuses`: of all answers to `send`, in their order. */
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

/** Opened by a test when what runs may end. */
export function gate(): { open: () => void; opened: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { open: resolve, opened: promise };
}
