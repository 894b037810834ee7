import { createHash } from 'node:crypto';

/** Returns a number of [0, 1) that the text determines. */
export const uniformOf = (text: string): number =>
  createHash('sha256').update(text).digest().readUIntBE(0, 6) / 2 ** 48;
