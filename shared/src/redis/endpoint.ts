import type { RedisOptions } from 'ioredis';

export type Endpoint = { host: string; port: number };

/** `legacy`: plain replies; ioredis 6 has other forms. */
export type ClientOptions = RedisOptions & { replyMapping?: 'legacy' };

/** `address`: without secrets, for messages. */
export type RedisEndpoint = { options: ClientOptions; address: string };
