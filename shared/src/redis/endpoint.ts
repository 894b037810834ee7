import type { RedisOptions } from 'ioredis';

export type Endpoint = { host: string; port: number };

/** Options of a client. `legacy`: replies have the form of ioredis 5, not that of ioredis 6. */
export type ClientOptions = RedisOptions & { replyMapping?: 'legacy' };

/** Options of a client, and the `address` without secrets for messages. */
export type RedisEndpoint = { options: ClientOptions; address: string };
