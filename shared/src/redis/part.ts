import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { RolloutJob } from '../records/job.ts';
import type { Clock } from './clock.ts';
import type { Keys } from './keys.ts';
import { loadScript, type Script } from './script.ts';

/** The connection, the keys and the functions that the parts of a farm share. */
export type Store = {
  readonly redis: Redis;
  readonly keys: Keys;
  readonly clock: Clock;
  /** Address of Redis without password, for messages. */
  readonly address: string;
  /** Opens another connection, which is closed with the farm. */
  readonly connect: () => Redis;
  /** Returns the BullMQ queue, which is opened at the first call and closed with the farm. */
  readonly queue: () => Queue<RolloutJob>;
};

/** A large part of the farm. The farm exposes the public methods of the class; open.ts converts errors of outages to UnusableError. */
export class Part {
  protected readonly store: Store;
  protected readonly redis: Redis;
  protected readonly keys: Keys;
  /** Loads a Lua script; see {@link loadScript}. This is a field, because the farm exposes all methods of a part. */
  protected readonly script = (...names: string[]): Script => loadScript(this.redis, ...names);

  constructor(store: Store) {
    this.store = store;
    this.redis = store.redis;
    this.keys = store.keys;
  }
}
