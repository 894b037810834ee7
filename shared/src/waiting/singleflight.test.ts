import { expect, test } from 'vitest';
import { createLazy, createSingleFlight } from './singleflight.ts';

test('concurrent callers of a key share its work, other keys do not', async () => {
  const flights = createSingleFlight<string>();
  const begun: string[] = [];
  const end = Promise.withResolvers<string>();
  const work = (name: string) => () => {
    begun.push(name);
    return end.promise;
  };
  const both = [flights.run('a', work('first')), flights.run('a', work('second'))];
  const other = flights.run('b', work('other'));
  expect([begun, flights.isUnderWay('a')]).toEqual([['first', 'other'], true]);
  end.resolve('done');
  expect(await Promise.all([...both, other])).toEqual(['done', 'done', 'done']);
  expect(flights.isUnderWay('a')).toBe(false);
  await flights.run('a', work('later'));
  expect(begun).toEqual(['first', 'other', 'later']);
});

test('work continues without its caller, and waiting callers get its failure', async () => {
  const flights = createSingleFlight<void>();
  const end = Promise.withResolvers<void>();
  const controller = new AbortController();
  const left = flights.run('a', () => end.promise, controller.signal);
  controller.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  const stays = flights.run('a', () => Promise.reject(new Error('a second one')));
  end.reject(new Error('failed'));
  await expect(stays).rejects.toThrow('failed');
  expect(flights.isUnderWay('a')).toBe(false);
});

test('lazy work runs once, and again only after a failure', async () => {
  let calls = 0;
  const lazy = createLazy(async () => {
    if (++calls === 1) throw new Error('not yet');
    return calls;
  });
  expect(lazy.started()).toBeNull();
  await expect(lazy.get()).rejects.toThrow('not yet');
  expect(lazy.started()).toBeNull();
  expect(await Promise.all([lazy.get(), lazy.get()])).toEqual([2, 2]);
  expect(await lazy.started()).toBe(2);
});
