/** Hashes of JSON values, equal in every process. */
import { createHash } from 'node:crypto';

/** Returns the whole hash, which identifies a call. */
export const fingerprint = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url');

/** Returns 24 characters of the hash, for settings, rows and keys. */
export const digest = (value: unknown): string => fingerprint(value).slice(0, 24);
