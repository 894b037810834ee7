/** The parts of a policy client that all turns of one attempt share. */
import {
  createEndpointClient,
  type EndpointClient,
  type TokenLimits,
  type TurnClient,
} from '@swefarm/policy';
import type { Message, PolicyConfig, PolicyKey, ToolDefinition } from '@swefarm/shared';
import type { Time } from '../deadline.ts';
import type { EndpointBinding } from './binding.ts';
import type { Endpoints } from './endpoints.ts';
import { whyKeyWithheld, withoutUser } from './redact.ts';
import type { Versions } from './versions.ts';
import type { FollowedPolicy } from './watch.ts';

export type PolicyDeps = {
  /** Null: the endpoint needs no key. Only endpoints at an origin of the key receive it. */
  apiKey: PolicyKey | null;
  rolloutId: string;
  attempt: number;
  limits: Pick<TokenLimits, 'contextLimit' | 'sequenceBudget'>;
  /** The caller must dispose the followed policy after the client. */
  followed: FollowedPolicy;
  endpoints: Endpoints;
  /** Called when the wait for an answer begins; the return value is disposed when the answer has arrived. */
  awaiting?: () => Disposable;
  log: { warn(fields: Record<string, unknown>, message: string): void };
  time?: Time;
};

export type TurnContext = {
  config: PolicyConfig;
  deps: PolicyDeps;
  binding: EndpointBinding;
  versions: Versions;
  /** Adds tokens and the seconds they took. Calls with 0 tokens are ignored. */
  addThroughput(tokens: number, seconds: number): void;
  time: Time;
  clientAt(url: string): EndpointClient;
  turnClient(): Promise<TurnClient>;
};

export type TurnRequest = {
  messages: readonly Message[];
  tools: readonly ToolDefinition[];
  signal: AbortSignal;
};

/** Returns a function that creates the client of an endpoint, and reuses it while the endpoint does not change. */
export function cachedClient({
  apiKey,
  rolloutId,
  attempt,
  log,
}: PolicyDeps): (url: string) => EndpointClient {
  let cached: { url: string; client: EndpointClient } | null = null;
  return (url) => {
    if (cached?.url !== url) {
      const headers = { 'x-swefarm-rollout': rolloutId, 'x-swefarm-attempt': String(attempt) };
      cached = { url, client: createEndpointClient(url, apiKey, headers) };
      const why = whyKeyWithheld(apiKey, url);
      if (why) log.warn({ endpoint: withoutUser(url) }, why);
    }
    return cached.client;
  };
}
