/** The reaper removes sandboxes of this farm's dead workers, never those of another farm or of workers that may be alive. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { OwnedContainer, Owner, Runtime } from '@swefarm/sandbox';
import { processStarted, silentLog, type WorkerRecord } from '@swefarm/shared';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createWorkerLiveness, identify, type ReaperDeps, reap, startReaper } from './reaper.ts';

const self = identify('farm', 'me', 'here');
const HOUR = 3_600_000;

const [, namespace] = self.pid_started.split('@');
/** Owners: a dead process of this machine, and a process that this worker cannot see. */
const DEAD = { worker: 'dead', pid: 4_000_000, pid_started: `1@${namespace}` };
const UNSEEN = { worker: 'elsewhere', pid: 1, pid_started: '1@1' };

const { node: _node, ...mine } = self;
const sandbox = (id: string, owner: Partial<Owner> = {}): OwnedContainer => ({
  ...{ id, owner: { ...mine, rollout_id: `r.i.${id}`, attempt: 1, ...owner } },
});

const depsOf = (runtime: object, living: readonly string[]): ReaperDeps => ({
  runtime: runtime as Runtime,
  self,
  registry: { list: async () => living.map((worker) => ({ worker }) as WorkerRecord) },
  active: { list: () => [{ rollout_id: 'r.i.used', attempt: 1 }] },
  log: silentLog(),
});

async function sweep(
  all: OwnedContainer[],
  living: string[],
  broken: string[] = [],
  more: Partial<ReaperDeps> = {},
) {
  const removed: string[] = [];
  const runtime = {
    listOwned: async () => all,
    remove: async (id: string) => {
      if (broken.includes(id)) throw new Error('engine says no');
      removed.push(id);
    },
  };
  const count = await reap({ ...depsOf(runtime, living), ...more });
  expect(count).toBe(removed.length);
  return removed.sort();
}

test('a sweep removes only sandboxes without a living owner', async () => {
  const child = spawn('sleep', ['60']);
  const other = { worker: 'other', pid: child.pid ?? 0 };
  const pid_started = `${processStarted(other.pid)}@${namespace}`;
  const all = [
    sandbox('used'),
    sandbox('older-attempt', { rollout_id: 'r.i.used', attempt: 0 }),
    sandbox('forgotten'),
    sandbox('young'),
    sandbox('alive', { ...other, pid_started }),
    sandbox('dead', DEAD),
    sandbox('stuck', DEAD),
    sandbox('unseen', UNSEEN),
    sandbox('unseen-dead', { ...UNSEEN, worker: 'gone' }),
    sandbox('other-farm', { ...DEAD, farm: 'other' }),
  ];
  const since = performance.now() - HOUR;
  const unused = new Map(['forgotten', 'older-attempt', 'used'].map((id) => [id, since]));
  expect(await sweep(all, ['me', 'elsewhere'], ['stuck'], { unused })).toEqual([
    'dead',
    'forgotten',
    'older-attempt',
    'unseen-dead',
  ]);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await sweep(all, ['me', 'elsewhere'])).toContain('alive');
});

test('an unused sandbox is removed after a while by a monotonic clock, or at the end', async () => {
  const all = [sandbox('used'), sandbox('left')];
  const unused = new Map<string, number>();
  const day = vi.spyOn(Date, 'now').mockReturnValue(0);
  onTestFinished(() => day.mockRestore());
  expect(await sweep(all, ['me'], [], { unused })).toEqual([]);
  day.mockReturnValue(HOUR);
  expect(await sweep(all, ['me'], [], { unused })).toEqual([]);
  expect([...unused.keys()]).toEqual(['left']);
  expect(await sweep(all, ['me'], [], { unused, ending: true })).toEqual(['left']);
  // A sandbox in use is no longer listed as unused.
  expect(await sweep([sandbox('used')], ['me'], [], { unused })).toEqual([]);
  expect(unused.size).toBe(0);
});

test('an unseen worker is dead after two minutes off the list, but not after an outage', () => {
  let now = 0;
  const unseen = createWorkerLiveness(() => now);
  const isDead = (...listed: string[]) => unseen.isDead('other', new Set(listed), 'me');
  // At its own start, and right after an outage, this worker is not listed itself.
  expect(isDead()).toBe(false);
  now += 600_000;
  expect(isDead()).toBe(false);
  expect(isDead('me')).toBe(false);
  now += 60_000;
  expect(isDead('me')).toBe(false);
  // After an outage all times start again.
  now += 30_000;
  expect(isDead()).toBe(false);
  now += 60_000;
  expect(isDead('me')).toBe(false);
  now += 60_000;
  expect(isDead('me', 'other')).toBe(false);
  expect(isDead('me')).toBe(false);
  now += 60_000;
  expect(isDead('me')).toBe(false);
  now += 60_000;
  expect(isDead('me')).toBe(true);
});

test('a sweep leaves sandboxes of workers that may be alive and removes those of dead processes', async () => {
  const all = [sandbox('unseen', UNSEEN), sandbox('dead', DEAD)];
  expect(await sweep(all, ['me'], [], { liveness: createWorkerLiveness() })).toEqual(['dead']);
});

test('a slow removal does not delay other removals, and sweeps do not overlap', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const stuck = Promise.withResolvers<void>();
  const removed: string[] = [];
  let sweeps = 0;
  const runtime = {
    listOwned: async () => {
      sweeps++;
      return [sandbox('stuck', DEAD), sandbox('other', DEAD)];
    },
    remove: async (id: string) => {
      if (id === 'stuck') await stuck.promise;
      removed.push(id);
    },
  };
  const counts: number[] = [];
  const stop = new AbortController();
  startReaper(depsOf(runtime, []), (count) => counts.push(count), stop.signal);
  await vi.advanceTimersByTimeAsync(4 * 60_000);
  expect([sweeps, removed, counts]).toEqual([1, ['other'], []]);
  stuck.resolve();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([sweeps, removed.slice(0, 2), counts]).toEqual([2, ['other', 'stuck'], [2, 2]]);
  stop.abort();
  await vi.advanceTimersByTimeAsync(5 * 60_000);
  expect(sweeps).toBe(2);
});
