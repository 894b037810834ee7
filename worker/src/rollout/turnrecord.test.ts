import { type BegunAnswer, decodeTurns, PolicyConfig, type RecordedTurn, silentLog } from '@swefarm/shared';
import { bareRun } from '@swefarm/testkit';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { AttemptAborted } from './active.ts';
import { afterFailure } from './afterfailure.ts';
import { AttemptTurns } from './turnrecord.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const partOf = (...ids: number[]): BegunAnswer => ({
  ...{ start: 's', observed: [], exit_codes: [], prompt: 'hash', text: ids.join(' ') },
  ...{ ids: Int32Array.from(ids), log_probs: Float32Array.from(ids, (id) => -id) },
  ...{ versions: [{ start: '1', end: '1', tokens: ids.length }], seconds: 1 },
});
const TURN = { start: 's', observed: [], exit_codes: [], answer: { role: 'assistant', content: 'a' } };

/** Returns a record in memory. `gate` delays each append. */
function scene(gate: () => Promise<unknown> = async () => undefined) {
  const store = { blob: null as Buffer | null, appends: 0 };
  const append = async (_id: string, _name: unknown, bytes: Uint8Array, offset: number) => {
    store.appends++;
    await gate();
    if (offset !== 0 && store.blob?.length !== offset) return false;
    store.blob = Buffer.concat([offset === 0 ? Buffer.alloc(0) : (store.blob as Buffer), bytes]);
    return true;
  };
  const policy = PolicyConfig.parse({ urls: ['http://p'], model: 'm', token_mode: 'token-in' });
  const claimed = { job: { rollout_id: 'run.i.0' }, attempt: 1, claim: 'c', previous: [] };
  const artifacts = { append, locate: () => 'l', remove: async () => undefined };
  const how = { artifacts: artifacts as never, log: silentLog(), signal: new AbortController().signal };
  const turns = new AttemptTurns({ ...claimed, run: bareRun({ policy }) }, how);
  return { store, turns, read: async () => await decodeTurns(store.blob ?? Buffer.alloc(0)) };
}

test('the journal names a record that has only a part of the first answer', async () => {
  const { turns, read } = scene();
  turns.begin(() => partOf(1, 2));
  expect(await turns.close()).toEqual({ turns: 0 });
  expect(await read()).toEqual({ replay: null, turns: [], begun: partOf(1, 2) });
});

test('the journal names no record for an attempt without one', async () => {
  const { turns, store } = scene();
  turns.begin(() => null);
  expect(await turns.close()).toEqual({});
  expect(store.appends).toBe(0);
});

test('a part that the client rejects as damaged is withdrawn', async () => {
  const { turns, store, read } = scene();
  let received = partOf(1, 2);
  turns.begin(() => received);
  await vi.advanceTimersByTimeAsync(3_000);
  await vi.waitFor(async () => expect((await read()).begun?.ids).toHaveLength(2));
  received = partOf();
  await vi.advanceTimersByTimeAsync(3_000);
  await vi.waitFor(async () => expect(await read()).toEqual({ replay: null, turns: [] }));
  await vi.advanceTimersByTimeAsync(30_000);
  expect(await turns.close()).toEqual({ turns: 0 });
  expect(store.appends).toBe(2);
});

test('a record ends when the rollout moves to another attempt', async () => {
  const release = Promise.withResolvers<void>();
  const { turns, store } = scene(() => release.promise);
  turns.begin(() => partOf(1, 2));
  await vi.advanceTimersByTimeAsync(3_000);
  await vi.waitFor(() => expect(store.appends).toBe(1));
  turns.add({ ...TURN, turn: {}, at: 1 } as unknown as RecordedTurn);
  turns.begin(() => partOf(3));
  const closed = turns.close(true);
  // The other attempt removed the record, so the append finds an unexpected length.
  store.blob = Buffer.from('other');
  release.resolve();
  await closed;
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(60_000);
  turns.begin(() => partOf(4));
  expect(store.appends).toBe(1);
});

test('a superseded attempt ends its record', async () => {
  const { turns, store } = scene();
  turns.begin(() => partOf(1));
  const aborted = new AttemptAborted('superseded');
  const farm = { journal: { end: async () => undefined } };
  const services = { farm, metrics: { attempts: { inc: () => undefined } } };
  const context = { turns, services, signal: AbortSignal.abort(aborted), job: { rollout_id: 'run.i.0' } };
  const after = await afterFailure(context as never, aborted, Promise.resolve());
  expect(after).toEqual({ next: 'done' });
  expect([vi.getTimerCount(), store.appends]).toEqual([0, 0]);
});
