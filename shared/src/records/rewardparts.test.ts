import { expect, test } from 'vitest';
import { parseWeights, RewardWeights } from './rewardparts.ts';

test('a text of weights is read in its order', () => {
  expect(parseWeights('resolved=1, f2p=0.5 ,format=-.1,length=soft:24k:32768:-2,turns=0')).toEqual({
    weights: [
      { part: 'resolved', weight: 1 },
      { part: 'f2p', weight: 0.5 },
      { part: 'format', weight: -0.1 },
      { part: 'length', weight: -2, soft: { from: 24 * 1024, to: 32 * 1024 } },
      { part: 'turns', weight: 0 },
    ],
  });
  expect(parseWeights('length=soft:10:20')).toEqual({
    weights: [{ part: 'length', weight: -1, soft: { from: 10, to: 20 } }],
  });
});

test.each([
  ['', /expected PART=WEIGHT, as in resolved=1.*got ""/],
  ['resolved', /expected PART=WEIGHT.*got "resolved"/],
  ['resolved=1,', /got ""/],
  ['resolved=1=2', /got "resolved=1=2"/],
  ['solved=1', /unknown part "solved"; known: resolved, f2p, p2p/],
  ['toString=1', /unknown part "toString"/],
  ['f2p=1,f2p=2', /part "f2p" is given twice/],
  ['f2p=', /expected f2p=WEIGHT with a number between -100 and 100, got ""/],
  ['f2p=1e9', /got "1e9"/],
  ['f2p=NaN', /got "NaN"/],
  ['f2p=101', /got "101"/],
  ['length=-1', /expected length=soft:FROM:TO.*got "length=-1"/],
  ['length=hard:1:2', /expected length=soft/],
  ['length=soft:1.5:2', /expected length=soft/],
  ['length=soft:32k:24k', /FROM must be below TO/],
  ['length=soft:1:2:x', /expected length=soft:FROM:TO:WEIGHT with a number.*got "x"/],
  ['length=soft:1:2:3:4', /expected length=soft/],
])('the weights "%s" are refused', (text, message) => {
  const read = RewardWeights.safeParse(text);
  expect(read.error?.issues[0]?.message).toMatch(message);
});
