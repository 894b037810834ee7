/** Names for values, the same in every process: of settings, rows, keys and calls. */
import { createHash } from 'node:crypto';

const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url');

/** 24 characters: enough to tell settings, rows and keys apart. */
export const digest = (value: unknown): string => hashOf(value).slice(0, 24);

/** The whole hash: what tells one call from all others. */
export const fingerprint = (parts: readonly unknown[]): string => hashOf(parts);
