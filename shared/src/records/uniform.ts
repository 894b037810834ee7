import { createHash } from 'node:crypto';

/** Returns a pseudo-random number in [0, 1) that depends only on the text. */
export const uniformOf = (text: string): number =>
  createHash('sha256').update(text).digest().readUIntBE(0, 6) / 2 ** 48;
