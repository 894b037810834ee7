import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { errorMessage } from '../failures/errors.ts';

type Argument = string | number | Buffer;
export type Script = (keys: readonly string[], args: readonly Argument[]) => Promise<unknown>;

/** Loads a Lua script, which Redis caches by hash. @param names names of files without `.lua`, joined after the prelude in this order */
export function loadScript(redis: Redis, ...names: string[]): Script {
  const source = ['prelude', ...names]
    .map((name) => readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8'))
    .join('\n');
  const sha = createHash('sha1').update(source).digest('hex');
  return async (keys, args) => {
    try {
      return await redis.evalsha(sha, keys.length, ...keys, ...args);
    } catch (error) {
      // A restart clears the cache of scripts.
      if (!/NOSCRIPT/.test(errorMessage(error))) throw error;
      return await redis.eval(source, keys.length, ...keys, ...args);
    }
  };
}
