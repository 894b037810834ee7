import type { AdmissionState, EndpointLoad } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { nextState, type Observed } from './controller.ts';

const load = (change: Partial<EndpointLoad> = {}): EndpointLoad => ({
  ...{ endpoint: 'http://a/v1', kv_usage: 0.5, running: 10, waiting: 0, preemptions: 0 },
  ...change,
});
const seen = (change: Partial<Observed> = {}): Observed => ({
  ...{ endpoints: 1, loads: [load()], refused: 0, playing: 16, waiting: 500, now: 1_000_000 },
  ...change,
});

/** Plays polls one after the other; each changes what was seen before. Returns the limits. */
function limits(first: AdmissionState | null, ...polls: Partial<Observed>[]): (number | null)[] {
  let state = first;
  let now: Observed = seen();
  return polls.map((change) => {
    const playing = change.playing ?? Math.floor(state?.limit ?? 16);
    now = { ...now, now: now.now + 2_000, playing, ...change };
    state = nextState(state, now);
    return state.limit === null ? null : Math.floor(state.limit);
  });
}
const after = (...polls: Partial<Observed>[]): AdmissionState =>
  polls.reduce<AdmissionState | null>((state, change) => nextState(state, seen(change)), null) ??
  nextState(null, seen());

const at100 = { ...after(), limit: 100, endpoints: [load()] };

test('the limit starts at 32 for each endpoint, or at the rollouts that already play', () => {
  expect(nextState(null, seen({ waiting: 0 })).limit).toBe(32);
  expect(nextState(null, seen({ endpoints: 4, waiting: 0 })).limit).toBe(128);
  expect(nextState(null, seen({ playing: 90, waiting: 0 })).limit).toBe(90);
});

test('the limit grows by a factor up to the rollouts that exist, while the endpoints have room', () => {
  expect(limits(null, {}, {}, {}, {}, {})).toEqual([35, 38, 42, 46, 51]);
  expect(limits(null, {}, { waiting: 0 }, { loads: [load({ kv_usage: 0.8 })] })).toEqual([35, 35, 35]);
  expect(limits(at100, { waiting: 5 })).toEqual([105]);
  expect(limits(null, {}, { loads: [load({ waiting: 1 })] })).toEqual([35, 35]);
});

test.each<[string, Partial<Observed>, number, RegExp]>([
  ['a preemption', { loads: [load({ preemptions: 3 })] }, 80, /3 requests were preempted/],
  ['a full KV cache', { loads: [load({ kv_usage: 0.96 })] }, 83, /KV cache is 96 % full/],
  ['a refusal', { refused: 2 }, 80, /2 answers had status 429 or 503/],
  ['one full endpoint of two', { loads: [load(), load({ endpoint: 'b', kv_usage: 1 })] }, 80, /100 %/],
])('%s lowers the limit by a factor and names the reason', (_, change, limit, reason) => {
  const next = nextState(at100, seen({ playing: 100, now: 2_000_000, ...change }));
  expect(Math.floor(next.limit ?? 0)).toBe(limit);
  expect(next.reason).toMatch(reason);
});

test('the limit falls from the number that plays, and not below one for each endpoint', () => {
  const full = { loads: [load({ preemptions: 1 })], now: 2_000_000 };
  expect(nextState(at100, seen({ ...full, playing: 50 })).limit).toBe(40);
  expect(nextState(at100, seen({ ...full, playing: 2, endpoints: 8 })).limit).toBe(8);
});

test('a long queue lowers the limit only when it lasts', () => {
  const queued = { loads: [load({ running: 40, waiting: 30 })] };
  expect(limits(at100, queued, queued, queued)).toEqual([100, 100, 90]);
  expect(limits(at100, queued, queued, { loads: [load()] }, queued)).toEqual([100, 100, 110, 110]);
});

test('after a fall the limit waits until the load is below it, and then grows by a constant', () => {
  const full = { loads: [load({ preemptions: 1, running: 100 })], playing: 100 };
  const ending = { loads: [load({ preemptions: 1, running: 90 })] };
  const room = { loads: [load({ preemptions: 1, running: 60 })] };
  expect(limits(at100, full, ending, ending, room, room, room)).toEqual([80, 80, 80, 80, 81, 82]);
});

test('an overload that outlasts the wait lowers the limit again', () => {
  const more = Array.from({ length: 17 }, (_, at) => ({ loads: [load({ preemptions: at + 1 })] }));
  expect(limits(at100, { ...more[0], playing: 100 }, ...more.slice(1)).slice(14)).toEqual([80, 80, 64]);
});

test('without metrics there is no limit until an endpoint refuses requests', () => {
  const none = { loads: [] };
  expect(limits(null, none, { ...none, playing: 50 })).toEqual([null, null]);
  const refused = { ...none, playing: 50, refused: 1 };
  expect(limits(null, none, refused, { ...refused, playing: 40 }, refused, refused)).toEqual([
    null,
    40,
    40,
    41,
    42,
  ]);
});

test('endpoints that stop reporting leave the limit as it is for a minute', () => {
  const blind = (ms: number) => seen({ loads: [], now: 1_000_000 + ms, playing: 100 });
  const state = { ...at100, at: 1_000_000 };
  expect(nextState(state, blind(30_000))).toBe(state);
  expect(nextState(state, blind(70_000)).endpoints).toEqual([]);
});

test('a restarted server, whose counter of preemptions begins anew, does not lower the limit', () => {
  const before = { ...at100, endpoints: [load({ preemptions: 500 })] };
  expect(nextState(before, seen({ loads: [load({ preemptions: 2 })], playing: 100 })).limit).toBeCloseTo(110);
});
