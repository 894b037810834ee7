import { expect, test } from 'vitest';
import type { FaultContext } from './faults/fault.ts';
import { recovery } from './strike.ts';

const never = new AbortController().signal;

/** Makes the context of a farm that only has a number of committed results. */
function context(committed: () => number): FaultContext & { notes: string[] } {
  const notes: string[] = [];
  const progress = { committed, has: () => false, running: async () => [], results: [], runIds: () => [] };
  const rest = { farm: { workers: [] }, note: (what: string) => void notes.push(what), collector: null };
  return { ...rest, progress, notes } as unknown as FaultContext & { notes: string[] };
}

const strike = (affected: { rollout_id: string; attempt: number }[] | null) => ({
  fault: { kind: 'worker_kill' as const, at: 0, worker: 0, stage: null, ms: 0, offset: '' },
  ...{ struck: { what: 'struck', affected }, from: performance.now(), total: 8 },
});

test('without affected or remaining rollouts there is no recovery to measure', async () => {
  const [three, all] = [3, 8].map((done) => context(() => done));
  expect(await recovery(three as FaultContext, strike([]), never)).toBeNull();
  expect(await recovery(all as FaultContext, strike(null), never)).toBeNull();
});

test('a farm that does not continue after a fault is a problem', async () => {
  let committed = 3;
  const farm = context(() => committed);
  const going = recovery(farm, strike(null), never);
  committed = 4;
  expect(await going).toMatchObject({ kind: 'worker_kill' });

  const late = { ...strike([{ rollout_id: 'r', attempt: 1 }]), from: performance.now() - 200_000 };
  const stuck = context(() => 3);
  expect(await recovery(stuck, late, never)).toBe('worker_kill: not overcome after 180 s');
  expect(stuck.notes).toHaveLength(1);
});
