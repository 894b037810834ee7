/** Where a Redis is, and how a client is told. */
import type { RedisOptions } from 'ioredis';

export type Endpoint = { host: string; port: number };

/** Replies in the plain form; ioredis 6 has others. */
export type ClientOptions = RedisOptions & { replyMapping?: 'legacy' };

/** What a client connects with, and the address as it may be shown. */
export type RedisEndpoint = { options: ClientOptions; address: string };
