import { createHash } from 'node:crypto';

/** Returns a pseudo-random number in [0, 1) that depends only on the text. */
export const uniformOf = (text: string): number =>
  createHash('sha256').update(text).digest().readUIntBE(0, 6) / 2 ** 48;

/** Returns the items in a random order that their texts determine. */
export const shuffledBy = <T>(items: readonly T[], textOf: (item: T) => string): T[] =>
  items
    .map((item) => ({ item, at: uniformOf(textOf(item)) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
