/** A short name for a value, the same in every process: of settings, rows and keys. */
import { createHash } from 'node:crypto';

export const digest = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 24);
