import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rolloutId } from './ids.ts';
import { PolicyConfig } from './runconfig.ts';
import { effectiveSampling, NEUTRAL, reshapingKeys, turnSeed } from './sampling.ts';

const config = (over: object) => PolicyConfig.parse({ urls: ['http://a/v1'], model: 'm', ...over });
const effective = (over: object) => effectiveSampling(config(over));

test('training sends all keys; other runs send only their own', () => {
  const sampling = { temperature: 0.7, top_k: 20 };
  expect(effective({ require_tokens: true })).toEqual(NEUTRAL);
  expect(effective({ require_tokens: true, sampling })).toEqual({ ...NEUTRAL, ...sampling });
  expect(effective({ sampling })).toEqual(sampling);
  expect(effective({})).toEqual({});
});

test('extra_body wins; its invalid values are no sampling keys', () => {
  const extra_body = { top_k: 7, temperature: 'hot', stop: 'END', max_tokens: null, other: 1 };
  expect(effective({ sampling: { top_k: 20, temperature: 0.5, max_tokens: 9 }, extra_body })).toEqual({
    temperature: 0.5,
    top_k: 7,
    stop: ['END'],
    max_tokens: 9,
  });
});

test('only keys that change the distribution are reported', () => {
  expect(
    reshapingKeys(effective({ require_tokens: true, sampling: { max_tokens: 5, seed: 1, stop: ['x'] } })),
  ).toEqual([]);
  expect(reshapingKeys({ temperature: 0.7, top_p: 1, top_k: 20, presence_penalty: 0 })).toEqual([
    'temperature',
    'top_k',
  ]);
});

test.each<[object, RegExp]>([
  [{ top_k: 0 }, /expected -1/],
  [{ top_p: 0 }, /top_p/],
  [{ stop: [''] }, /stop/],
  [{ temperature: -1 }, /temperature/],
])('%j is refused', (sampling, message) => {
  const read = PolicyConfig.safeParse({ urls: ['http://a/v1'], model: 'm', sampling });
  expect(JSON.stringify(read.error?.issues)).toMatch(message);
});

test('a seed differs by instance, index and turn, and is the same in every run and attempt', () => {
  fc.assert(
    fc.property(
      fc.maxSafeInteger(),
      fc.stringMatching(/^[a-z0-9.]{1,20}$/).map((instance) => rolloutId('run', instance, 1)),
      fc.nat(250),
      (seed, id, turn) => {
        const own = turnSeed(seed, id, turn);
        expect(own).toBe(turnSeed(seed, id, turn));
        expect(own).toBe(turnSeed(seed, `other${id}`, turn));
        expect(Number.isInteger(own) && own >= 0 && own < 2 ** 31).toBe(true);
        const others = [
          turnSeed(seed, id, turn + 1),
          turnSeed(seed, `${id}1`, turn),
          turnSeed(seed + 1, id, turn),
        ];
        expect(others).not.toContain(own);
      },
    ),
    { seed: 14 },
  );
});
