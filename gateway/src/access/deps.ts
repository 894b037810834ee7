/** Dependencies of routes, and the additions to Fastify's types. */

import type { RowOptions } from '@swefarm/datasets';
import type { HealthRegistry, SettingsTree } from '@swefarm/runs';
import type { DryRunScript, Farm, Instance, Log, ProducerConfig } from '@swefarm/shared';
import type { Prices } from '@swefarm/trajectories';
import type { App } from './app.ts';
import type { Caller } from './callers.ts';
import type { Quota } from './quota.ts';

export type GatewayDeps = {
  farm: Farm;
  config: ProducerConfig;
  log: Log;
  /** Aborted when the gateway stops. */
  signal: AbortSignal;
  /** Default settings of runs for all callers: keys of a run record. */
  settings?: SettingsTree;
  /** Instances that callers may name by id. */
  instances?: ReadonlyMap<string, Instance>;
  rows?: RowOptions;
  health?: HealthRegistry;
  /** Script of the dry run; its HTTP faults apply. */
  faults?: DryRunScript;
};

export type RouteDeps = GatewayDeps & {
  quota: Quota;
  /** Prices of models; null: the gateway has no file of prices. */
  prices: Prices | null;
};

export type Routes = (app: App, deps: RouteDeps) => Promise<void> | void;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route is served without a token. */
    public?: boolean;
  }
  interface FastifyRequest {
    /** Callers with the request's token; not empty unless the route is public. */
    callers: readonly Caller[];
  }
  interface FastifyInstance {
    callers: readonly Caller[];
  }
}
