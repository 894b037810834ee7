/** Types of configuration values. Each parses the text of a variable or flag and a typed value. */
import { homedir } from 'node:os';
import { isAbsolute, resolve } from 'node:path';
import { z } from 'zod';
import { originOf, originsOf } from '../security/policykey.ts';
import { maskUrl, Secret } from '../security/secret.ts';

const UNITS: Record<string, number> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

/** Parses `4g`, `512MiB`, `1048576` in powers of 1024; null for other texts. */
export function parseBytes(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text.trim());
  const size = match && Math.round(Number(match[1]) * (UNITS[(match[2] ?? '').toLowerCase()] ?? 1));
  return Number.isSafeInteger(size) ? size : null;
}

export const bytes = z.union([z.number(), z.string()]).transform((value, context) => {
  const size = parseBytes(String(value));
  if (size !== null) return size;
  context.addIssue({ code: 'custom', message: 'expected bytes, such as 1073741824, 512MiB or 8G' });
  return z.NEVER;
});

const numeric = z.union([
  z.number(),
  z
    .string()
    .trim()
    .regex(/^-?\d+(\.\d+)?$/, 'expected a number')
    .transform(Number),
]);
export const positiveInteger = numeric.pipe(z.number().int().positive());
export const positiveSeconds = numeric.pipe(z.number().positive());
export const cpus = numeric.pipe(z.number().positive());
export const count = numeric.pipe(z.number().int().nonnegative());
export const seconds = numeric.pipe(z.number().nonnegative());
export const share = numeric.pipe(z.number().min(0).max(1));
export const port = numeric.pipe(z.number().int().min(0).max(65_535));

export const flag = z.union([z.boolean(), z.stringbool()]);
export const text = z.string().trim().min(1);

/** Values separated by commas or white space. */
export const list = z.union([
  z.array(text),
  z.string().transform((value) => value.split(/[\s,]+/).filter((word) => word !== '')),
]);

/** Origins (scheme, host, port) of a list of http and https URLs. */
export const origins = list.transform((urls, context) => {
  const wrong = urls.find((url) => originOf(url) === null);
  if (wrong === undefined) return originsOf(urls);
  context.addIssue({
    code: 'custom',
    message: `expected http://host:port or https://host:port, found ${maskUrl(wrong)}`,
  });
  return z.NEVER;
});

/** An http or https URL without trailing slash, query and user. */
export const httpUrl = text.transform((value, context) => {
  const url = originOf(value) === null ? null : URL.parse(value);
  if (url && url.username === '' && url.search === '') return url.href.replace(/\/+$/, '');
  context.addIssue({ code: 'custom', message: `expected http://… or https://…, found ${maskUrl(value)}` });
  return z.NEVER;
});

/** A path; relative paths become absolute, and `~` is the home directory. */
export const path = text.transform((value) => {
  const expanded = value.replace(/^~(?=\/|$)/, homedir());
  return isAbsolute(expanded) ? expanded : resolve(expanded);
});

export const secret = z.union([z.instanceof(Secret), text.transform((value) => new Secret(value))]);

/** Address of Redis: a URL (redis, rediss, each also +sentinel or +cluster; unix), a path of a socket, or `file:` with an address file. */
export const redisUrl = z.union([
  z.instanceof(Secret),
  text
    .refine(
      (value) => /^(rediss?(\+sentinel|\+cluster)?|unix):\/\/.+|^file:\/.+/.test(value) || isAbsolute(value),
      {
        message:
          'expected redis://[user:password@]host:port[/db], rediss://…, redis+sentinel://host:port,…/NAME, redis+cluster://host:port,…, the path of a unix socket, or file:/path of what swefarm redis writes',
      },
    )
    .transform((value) => new Secret(value, maskUrl(value))),
]);

/** Prefix of all keys: one hash tag, so that all keys are in the same slot of Redis Cluster. */
export const redisPrefix = text
  .regex(/^\{?[A-Za-z0-9_-]+\}?$/, 'expected letters, digits, - and _')
  .transform((value) => `{${value.replace(/[{}]/g, '')}}`);

/** `redis:`, or a directory as `dir:/path` or `file:///path`. */
export const artifactsUrl = text.transform((value, context) => {
  if (value === 'redis' || value === 'redis:') return 'redis:';
  const directory = /^(?:dir:|file:(?:\/\/)?)(.+)$/.exec(value)?.[1];
  if (directory) return `dir:${path.parse(directory)}`;
  context.addIssue({ code: 'custom', message: 'expected redis: or dir:/path' });
  return z.NEVER;
});
