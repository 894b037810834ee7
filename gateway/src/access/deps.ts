/** What every group of routes gets, and what a request carries once its caller is known. */

import type { RowOptions } from '@swefarm/datasets';
import type { HealthRegistry, SettingsTree } from '@swefarm/runs';
import type { Farm, Instance, Log, ProducerConfig } from '@swefarm/shared';
import type { Prices } from '@swefarm/trajectories';
import type { FastifyInstance } from 'fastify';
import type { Caller } from './callers.ts';
import type { Quota } from './quota.ts';

export type GatewayDeps = {
  farm: Farm;
  config: ProducerConfig;
  log: Log;
  /** Aborted when the gateway stops: whatever waits ends then. */
  signal: AbortSignal;
  /** Keys of a run's record, for every caller that does not set them. */
  settings?: SettingsTree;
  /** Instances that callers may name by their id alone. */
  instances?: ReadonlyMap<string, Instance>;
  /** How rows that callers post are read. */
  rows?: RowOptions;
  /** How instances behaved with the golden patch and with none. */
  health?: HealthRegistry;
};

/** What all routes of one gateway share. */
export type RouteDeps = GatewayDeps & {
  quota: Quota;
  /** Of models, as the gateway read them at its start; null: it was given no file. */
  prices: Prices | null;
};

/** A group of routes; it registers what it serves on `app`. */
export type Routes = (app: FastifyInstance, deps: RouteDeps) => Promise<void> | void;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Served without a token. */
    public?: boolean;
  }
  interface FastifyRequest {
    /** The callers that the request's token stands for, never empty behind authentication; see {@link findCaller}. */
    callers: readonly Caller[];
  }
  interface FastifyInstance {
    /** All callers of this gateway. */
    callers: readonly Caller[];
  }
}
