import { expect, it } from 'vitest';
import { ranking } from './routing.ts';

const workers = Array.from({ length: 16 }, (_, at) => ({ worker: `w${at}`, node: `n${at}` }));
const images = Array.from({ length: 4_000 }, (_, at) => `registry/image-${at}:latest`);
const homeOf = (image: string, among = workers): string | undefined => ranking(image, among)[0]?.worker;

it('the ranking does not depend on the order of the workers', () => {
  expect(ranking('a', workers.toReversed())).toEqual(ranking('a', workers));
});

it('images are spread evenly over the nodes', () => {
  const counts = new Map<string, number>();
  for (const image of images) counts.set(homeOf(image) ?? '', (counts.get(homeOf(image) ?? '') ?? 0) + 1);
  expect(counts.size).toBe(16);
  for (const count of counts.values()) expect(Math.abs(count - 250)).toBeLessThan(75);
});

it('a node that leaves moves only its own images', () => {
  const left = workers.filter(({ worker }) => worker !== 'w3');
  for (const image of images) if (homeOf(image) !== 'w3') expect(homeOf(image, left)).toBe(homeOf(image));
});

it('the workers of one node are adjacent in the ranking', () => {
  const double = workers.flatMap(({ node, worker }) => [
    { node, worker },
    { node, worker: `${worker}b` },
  ]);
  for (const image of images.slice(0, 50)) {
    const nodes = ranking(image, double).map(({ node }) => node);
    expect(new Set(nodes.filter((_, at) => at % 2 === 0)).size).toBe(16);
  }
});
