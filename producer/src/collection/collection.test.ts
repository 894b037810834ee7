import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { costOf, PolicyConfig, type Price, rolloutId } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { lineSummaryOf, priceFor, priceOf, readPrices } from '@swefarm/trajectories';
import { aLine } from '@swefarm/trajectories/test/result.ts';
import { expect, test } from 'vitest';
import { Feeder, type FeedRules, longestFirst, rolloutsAgain } from './feeder.ts';
import { parseSets, taggedPath } from './sets.ts';

const RULES: FeedRules = {
  runId: 'r',
  instanceIds: ['a', 'b'],
  perInstance: 4,
  untilResolved: null,
  budget: { tokens: null, cost: null, seconds: null },
  inFlight: null,
  only: null,
  costOf: () => 0,
};
const line = (id: string, index: number, resolved = false) =>
  lineSummaryOf(
    aLine({ instance_id: id, rollout_index: index, rollout_id: rolloutId('r', id, index), resolved }),
  );
const short = (ids: readonly string[]): string[] => ids.map((id) => id.slice(2));

test('until an instance is resolved, its rollouts run one after the other, up to the limit', () => {
  const feeder = new Feeder({ ...RULES, untilResolved: 1 }, []);
  expect(short(feeder.next())).toEqual(['a.0', 'b.0']);
  expect(feeder.next()).toEqual([]);
  feeder.note(line('a', 0, true));
  feeder.note(line('b', 0));
  expect(short(feeder.next())).toEqual(['b.1']);
  for (const index of [1, 2, 3]) {
    feeder.note(line('b', index));
    expect(short(feeder.next())).toEqual(index < 3 ? [`b.${index + 1}`] : []);
  }
  expect(feeder.stopped).toBeNull();
});

test('until two are resolved, as many run as would be enough', () => {
  const feeder = new Feeder({ ...RULES, untilResolved: 2, instanceIds: ['a'] }, []);
  expect(short(feeder.next())).toEqual(['a.0', 'a.1']);
  feeder.note(line('a', 0, true));
  expect(feeder.next()).toEqual([]);
  feeder.note(line('a', 1));
  expect(short(feeder.next())).toEqual(['a.2']);
});

test('a resumed collection counts what its output has', () => {
  const ended = [line('a', 0, true), line('b', 0), line('b', 2)];
  expect(short(new Feeder({ ...RULES, untilResolved: 1 }, ended).next())).toEqual(['b.1']);
  expect(short(new Feeder(RULES, ended).next())).toEqual(['a.1', 'a.2', 'a.3', 'b.1', 'b.3']);
  const ofOther = [line('c', 0), line('c', 1)];
  expect(short(new Feeder({ ...RULES, inFlight: 2 }, ofOther).next())).toEqual(['a.0', 'a.1']);
});

test.each<[Partial<FeedRules['budget']>, RegExp]>([
  [{ tokens: 30 }, /^30 of 30 tokens are spent/],
  [{ cost: 1 }, /^1\.00 of 1 US dollars are spent/],
  [{ seconds: 5 }, /^5 seconds are over/],
])('a budget of %j ends the queueing, and says so', (budget, reason) => {
  let now = 0;
  const rules = { ...RULES, inFlight: 2, costOf: () => 0.5, budget: { ...RULES.budget, ...budget } };
  const feeder = new Feeder(rules, [], () => now);
  expect(short(feeder.next())).toEqual(['a.0', 'a.1']);
  expect(feeder.next()).toEqual([]);
  feeder.note(line('a', 0));
  feeder.note(line('a', 1));
  now = 5_000;
  expect(feeder.next()).toEqual([]);
  expect(feeder.stopped).toMatch(reason);
});

test('only the failures of an output run again, in their places', () => {
  const lines = [line('a', 0), line('a', 2), line('b', 1)];
  const again = rolloutsAgain(lines, (one) => one.rollout_index > 0);
  expect(short(new Feeder({ ...RULES, only: again.only }, []).next())).toEqual(['a.2', 'b.1']);
  expect(again.replaces.get('a.2')).toBe('r.a.2');
});

test('long instances go first, unknown ones in the middle', () => {
  const seconds = (total: number) => ({ ...line('x', 0).seconds, total });
  const history = [
    { instance_id: 'short', seconds: seconds(1) },
    { instance_id: 'middle', seconds: seconds(5) },
    { instance_id: 'long', seconds: seconds(10) },
    { instance_id: 'long', seconds: seconds(20) },
  ];
  const order = longestFirst(
    ['short', 'new', 'long', 'middle'].map((instance_id) => ({ instance_id })),
    history,
  );
  expect(order.map(({ instance_id }) => instance_id)).toEqual(['long', 'new', 'middle', 'short']);
});

test('a set is a tag and settings of a run', () => {
  expect(parseSets(['t05:temperature=0.5,n=8', 't10: temperature=1 ,step_limit=50'])).toEqual([
    { tag: 't05', flags: { temperature: '0.5', groupSize: '8' } },
    { tag: 't10', flags: { temperature: '1', stepLimit: '50' } },
  ]);
  expect(() => parseSets(['a:n=1', 'a:n=2'])).toThrow(/--set a: given twice/);
  expect(() => parseSets(['a:temprature=1'])).toThrow(
    /"temprature=1" is no setting of a run; did you mean temperature\?/,
  );
  expect(() => parseSets(['a:temperature'])).toThrow(/write key=value/);
  expect(() => parseSets(['../a:n=1'])).toThrow(/expected TAG:key=value/);
  expect(taggedPath('out/x.jsonl', 't05')).toBe('out/x.t05.jsonl');
  expect(taggedPath('x', 't05')).toBe('x.t05');
});

test('prices are dollars for a million tokens; an unknown model is an error', async () => {
  const folder = temporaryFolder('prices');
  const path = join(folder, 'prices.yaml');
  await writeFile(path, 'm: {prompt: 2, completion: 10}\n');
  const prices = readPrices(path);
  expect(costOf({ prompt: 500_000, completion: 100_000 }, priceOf(prices, 'm', path))).toBe(2);
  expect(() => priceOf(prices, 'x', path)).toThrow(/has no price of the model x; it has m/);
  expect(() => priceOf(prices, 'constructor', path)).toThrow(/has no price/);
  const policy = (model: string, price?: Price) =>
    PolicyConfig.parse({ urls: [], model, ...(price ? { price } : {}) });
  // A price file that the command names must have the model's price; a price file of the configuration need not.
  expect(() => priceFor({ path, named: true }, policy('x'))).toThrow(/has no price of the model x/);
  expect(priceFor({ path, named: false }, policy('x'))).toBeNull();
  const own = { prompt: 1, completion: 1 };
  expect(priceFor(null, policy('m', own))).toEqual(own);
  expect(priceFor({ path, named: false }, policy('m', own))).toEqual({ prompt: 2, completion: 10 });
  await writeFile(path, 'm: {prompt: -1}\n');
  expect(() => readPrices(path)).toThrow(/m\.prompt:.*expected MODEL: \{prompt: 0\.15/);
});
