import { expect, it } from 'vitest';
import { chainOf, partsOf } from './layered.ts';

const MEGA = 1024 ** 2;
const sizes = (...mega: number[]) => mega.map((size) => ({ size: size * MEGA }));
const split = (...mega: number[]): number[][] =>
  partsOf(sizes(...mega)).map((part) => part.map(({ size }) => size / MEGA));

it('a layer with enough bytes ends a part, and small ones join the next', () => {
  expect(split(100, 0.1, 50, 0.1)).toEqual([[100], [0.1, 50], [0.1]]);
  expect(split(0.5, 0.6, 1)).toEqual([[0.5, 0.6], [1]]);
  expect(split(800, 10, 10, 30, 60)).toEqual([[800], [10, 10, 30], [60]]);
  expect(split()).toEqual([]);
});

it('images with the same lower layers share the parts below the first difference', () => {
  const lower = [300, 2, 40, 5];
  const [one, two] = [split(...lower, 100), split(...lower, 0.2, 90)];
  expect(one.slice(0, 2)).toEqual(two.slice(0, 2));
});

it('a chain names the layers in their order, as the OCI specification does', () => {
  const [a, b] = [{ diffId: `sha256:${'a'.repeat(64)}` }, { diffId: `sha256:${'b'.repeat(64)}` }];
  expect(chainOf([a])).toBe(a.diffId);
  expect(chainOf([a, b])).not.toBe(chainOf([b, a]));
});
