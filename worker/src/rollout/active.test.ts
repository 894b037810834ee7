import { expect, test } from 'vitest';
import { ActiveAttempts, abortOf } from './active.ts';

test('an attempt is listed once claimed, can be aborted by id, and is removed at its end', async () => {
  const active = new ActiveAttempts();
  const ended = active.during('r.i.0', async (signal) => {
    expect(active.list()).toEqual([]);
    active.claimed('r.i.0', { attempt: 2, claim: 'c' });
    expect(active.list()).toEqual([{ rollout_id: 'r.i.0', attempt: 2, claim: 'c' }]);
    active.abort('r.i.0', 'cancelled');
    return abortOf(signal)?.kind;
  });
  expect(await ended).toBe('cancelled');
  expect(active.count).toBe(0);
});

test('a drain aborts every attempt; a later reason does not overwrite the first', async () => {
  const active = new ActiveAttempts();
  const kinds = await Promise.all(
    ['a', 'b'].map((id) =>
      active.during(id, async (signal) => {
        if (id === 'b') active.abortAll('drain');
        active.abort(id, 'cancelled');
        return abortOf(signal)?.kind;
      }),
    ),
  );
  expect(kinds).toEqual(['cancelled', 'drain']);
});
