import { expect, test } from 'vitest';
import { abortKind } from './abort.ts';
import { ActiveAttempts } from './active.ts';

test('an attempt is listed once claimed, can be ended by name, and is forgotten at its end', async () => {
  const active = new ActiveAttempts();
  const ended = active.during('r.i.0', async (signal) => {
    expect(active.list()).toEqual([]);
    active.claimed('r.i.0', { attempt: 2, claim: 'c' });
    expect(active.list()).toEqual([{ rollout_id: 'r.i.0', attempt: 2, claim: 'c' }]);
    active.abort('r.i.0', 'cancelled');
    return abortKind(signal);
  });
  expect(await ended).toBe('cancelled');
  expect(active.count).toBe(0);
});

test('draining reaches every attempt; another reason does not overwrite the first', async () => {
  const active = new ActiveAttempts();
  const kinds = await Promise.all(
    ['a', 'b'].map((id) =>
      active.during(id, async (signal) => {
        if (id === 'b') active.abortAll('drain');
        active.abort(id, 'cancelled');
        return abortKind(signal);
      }),
    ),
  );
  expect(kinds).toEqual(['cancelled', 'drain']);
});
