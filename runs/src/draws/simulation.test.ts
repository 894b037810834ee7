/** Training steps over 2,000 instances of known difficulty: what a curriculum gains, and whether its reported rates are true. */
import { type GroupEnd, type Passes, Until } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { estimatePassRate } from './estimate.ts';
import { planDraws } from './plan.ts';

const INSTANCES = 2000;
const GROUP = 8;
const STEPS = 40;

/** A reproducible generator of numbers of [0, 1): a linear congruential generator modulo 2^31. */
function generator(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 7) / 2 ** 24;
  };
}

/** Difficulties as datasets of training have them: half is never solved, a fifth always, the rest between. */
function worldOf(seed: number) {
  const random = generator(seed);
  const instances = Array.from({ length: INSTANCES }, (_, at) => ({ instance_id: `i${at}`, image: 'x' }));
  const truth = new Map(
    instances.map(({ instance_id }) => {
      const kind = random();
      const rate = kind < 0.5 ? random() * 0.02 : kind < 0.7 ? 1 - random() * 0.02 : random();
      return [instance_id, rate];
    }),
  );
  const mean = [...truth.values()].reduce((sum, rate) => sum + rate, 0) / INSTANCES;
  return { instances, truth, mean, random };
}

/** Plays training steps of 32 mixed groups, one after the other, with the memory of the earlier ones. */
function train(seed: number, curriculum: object | null) {
  const { instances, truth, mean, random } = worldOf(seed);
  const passes = new Map<string, Passes>();
  return Array.from({ length: STEPS }, (_, step) => {
    const until = Until.parse({ groups: 32, max: 400, seed: seed + step, curriculum });
    const { draws, strata } = planDraws({ until, run_id: 'r' }, instances, passes);
    const ends: Pick<GroupEnd, 'instance_id' | 'usable' | 'pass_rate' | 'selected'>[] = [];
    const learnt: (() => void)[] = [];
    for (const { instance_id } of draws) {
      const passed = Array.from({ length: GROUP }, () => random() < (truth.get(instance_id) ?? 0));
      const count = passed.filter(Boolean).length;
      const selected = count > 0 && count < GROUP;
      ends.push({ instance_id, usable: GROUP, pass_rate: count / GROUP, selected });
      learnt.push(() =>
        passes.set(instance_id, [...(passes.get(instance_id) ?? []), [`${step}`, GROUP, count]]),
      );
      if (ends.filter((end) => end.selected).length === until.groups) break;
    }
    for (const learn of learnt) learn();
    const estimate = estimatePassRate({ ...until, strata }, draws.slice(0, ends.length), ends);
    return { drawn: ends.length, mixed: ends.filter((end) => end.selected).length, estimate, mean };
  });
}

const shareOf = (steps: ReturnType<typeof train>) =>
  steps.reduce((sum, { mixed }) => sum + mixed, 0) / steps.reduce((sum, { drawn }) => sum + drawn, 0);

const coverageOf = (steps: ReturnType<typeof train>) =>
  steps.filter(({ estimate: e, mean }) => e && e.low <= mean && mean <= e.high).length / steps.length;

test('a curriculum doubles the share of mixed groups, and reports the true rates', () => {
  const worlds = [1000, 2000, 3000];
  const uniform = worlds.map((seed) => train(seed, null));
  const curriculum = worlds.map((seed) => train(seed, { band: [0.2, 0.8] }));
  const figures = {
    mixed: { uniform: shareOf(uniform.flat()), curriculum: shareOf(curriculum.flat()) },
    true_rate_in_interval: { uniform: coverageOf(uniform.flat()), curriculum: coverageOf(curriculum.flat()) },
  };
  console.log(JSON.stringify(figures));
  expect(figures.mixed.curriculum / figures.mixed.uniform).toBeGreaterThan(2);
  expect(figures.true_rate_in_interval.uniform).toBeGreaterThan(0.9);
  expect(figures.true_rate_in_interval.curriculum).toBeGreaterThan(0.9);
});
