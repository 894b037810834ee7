import { expect, test } from 'vitest';
import { createWorkerMetrics } from '../metrics/workermetrics.ts';
import { ActiveAttempts } from '../rollout/active.ts';
import { takeCensus } from './census.ts';
import type { Node } from './node.ts';

test('a container without a running attempt is leaked; those of other workers do not count', async () => {
  const identity = { farm: 'f', worker: 'w', node: 'n', pid: 7, pid_started: '1' };
  const owned = (rollout_id: string, attempt: number, over: object = {}) => ({
    ...{ id: `${rollout_id}/${attempt}` },
    owner: { ...identity, rollout_id, attempt, ...over },
  });
  const active = new ActiveAttempts();
  const metrics = createWorkerMetrics();
  const runtime = {
    listOwned: async () => [
      ...[owned('a', 2), owned('a', 2), owned('a', 1), owned('gone', 1)],
      ...[owned('b', 1, { worker: 'other' }), owned('b', 1, { farm: 'other' }), owned('b', 1, { pid: 8 })],
    ],
    images: async () => ({ count: 3, bytes: 1000 }),
  };
  await active.during('a', async () => {
    active.claimed('a', { attempt: 2, claim: 'c' });
    await takeCensus({ identity, active, metrics, runtime } as unknown as Node);
  });
  const value = async (name: 'containers' | 'leaked' | 'images' | 'imageBytes') =>
    (await metrics[name].get()).values[0]?.value;
  expect(await value('containers')).toBe(4);
  expect(await value('leaked')).toBe(2);
  expect(await value('images')).toBe(3);
  expect(await value('imageBytes')).toBe(1000);
});
