import { expect, it } from 'vitest';
import { ranking } from './ranking.ts';

const places = Array.from({ length: 16 }, (_, at) => ({ worker: `w${at}`, node: `n${at}` }));
const images = Array.from({ length: 4_000 }, (_, at) => `registry/image-${at}:latest`);
const homeOf = (image: string, among = places): string | undefined => ranking(image, among)[0]?.worker;

it('the order does not depend on the order in which workers are known', () => {
  expect(ranking('a', places.toReversed())).toEqual(ranking('a', places));
});

it('images spread evenly', () => {
  const counts = new Map<string, number>();
  for (const image of images) counts.set(homeOf(image) ?? '', (counts.get(homeOf(image) ?? '') ?? 0) + 1);
  expect(counts.size).toBe(16);
  for (const count of counts.values()) expect(Math.abs(count - 250)).toBeLessThan(75);
});

it('a node that goes moves its own images only', () => {
  const left = places.filter(({ worker }) => worker !== 'w3');
  for (const image of images) if (homeOf(image) !== 'w3') expect(homeOf(image, left)).toBe(homeOf(image));
});

it('workers of one node stand together', () => {
  const double = places.flatMap(({ node, worker }) => [
    { node, worker },
    { node, worker: `${worker}b` },
  ]);
  for (const image of images.slice(0, 50)) {
    const nodes = ranking(image, double).map(({ node }) => node);
    expect(new Set(nodes.filter((_, at) => at % 2 === 0)).size).toBe(16);
  }
});
