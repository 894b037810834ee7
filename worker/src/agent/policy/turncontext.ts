/** The parts of a policy client that all turns of one attempt share. */
import {
  type Continued,
  createEndpointClient,
  type EndpointClient,
  openTurnClients,
  type TokenLimits,
  type TurnClient,
} from '@swefarm/policy';
import {
  createLazy,
  type Message,
  modelOfRun,
  type PolicyConfig,
  type PolicyKey,
  type ToolDefinition,
} from '@swefarm/shared';
import type { LineRequest } from '../agent.ts';
import { createPause, REAL_TIME, type Time, unionOf } from '../deadline.ts';
import type { Endpoints } from './endpoints.ts';
import { whyKeyWithheld, withoutUser } from './redact.ts';
import { servedModel } from './servedmodels.ts';
import { createVersions } from './versions.ts';
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
  /** Seconds for which a rollout that has answers retries after 429 and 503, if these are more than the run's patience; absent: none. */
  refusalPatience?: number;
  /** Called for each answer with status 429 or 503. */
  onRefused?: () => void;
  /** Called when the wait for an answer begins; the return value is disposed when the wait ends. */
  awaiting?: () => Disposable;
  log: { warn(fields: Record<string, unknown>, message: string): void };
  time?: Time;
};

/** `answer` and `maxTokens` are options of the turn client. The picked fields are described in {@link LineRequest}. */
export type TurnRequest = Pick<LineRequest, 'begun' | 'onBegin' | 'onResumed'> & {
  messages: readonly Message[];
  tools: readonly ToolDefinition[];
  signal: AbortSignal;
  answer?: number;
  maxTokens?: number | null;
};

/** Opens the turn client of one line of requests, at its first request. */
export type LazyTurnClient = () => Promise<TurnClient>;

export type TurnContext = ReturnType<typeof openTurnContext>;

/** Throws RolloutFailure `policy_bad_request` when neither the run nor its policy names an endpoint. */
export function openTurnContext(config: PolicyConfig, deps: PolicyDeps) {
  const { rolloutId, apiKey, limits, time = REAL_TIME } = deps;
  const binding = bindEndpoint(config, deps);
  const model = () => modelOfRun(config, deps.followed.record());
  const modelLength = async () => (await servedModel(binding.url, model(), apiKey)).length;
  const clients = createLazy(() =>
    openTurnClients(config, { rolloutId, limits: { ...limits, modelLength }, model }),
  );
  const received = { tokens: 0, seconds: 0 };
  const refusing = createPause();
  return {
    config,
    deps,
    binding,
    /** All tokens of the attempt so far and the seconds they took. */
    received,
    /** Adds the tokens and the seconds of a call. A call without tokens is ignored, because its seconds would only lower the throughput. */
    addThroughput(tokens: number, seconds: number): void {
      if (tokens === 0) return;
      received.tokens += tokens;
      received.seconds += seconds;
    },
    time,
    /** Stops the agent's clock, but not the patience, while a request waits after a 429 or 503. */
    setRefusing: refusing.set,
    /** Pauses of the agent's clock. */
    pause: unionOf(deps.followed.pause, refusing.pause),
    clientAt: cachedClient(deps, config),
    openVersions: createVersions(config, { ...deps, model }),
    /** Returns the model of the next request. */
    model,
    turnClients: clients.get,
    modelLength,
    /** @param after the answer that the line continues; absent: the line begins with a whole prompt */
    openLine(after?: Continued): LazyTurnClient {
      return createLazy(async () => (await clients.get()).open(after)).get;
    },
  };
}

/** Returns a function that creates the client of an endpoint, and reuses it while the endpoint does not change. */
function cachedClient(
  { apiKey, rolloutId, attempt, log }: PolicyDeps,
  { session_header, headers: own }: PolicyConfig,
): (url: string) => EndpointClient {
  let cached: { url: string; client: EndpointClient } | null = null;
  return (url) => {
    if (cached?.url !== url) {
      const headers = {
        'x-swefarm-rollout': rolloutId,
        'x-swefarm-attempt': String(attempt),
        ...(session_header === null ? {} : { [session_header.toLowerCase()]: rolloutId }),
        ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name.toLowerCase(), value])),
      };
      cached = { url, client: createEndpointClient(url, apiKey, headers) };
      const why = whyKeyWithheld(apiKey, url);
      if (why) log.warn({ endpoint: withoutUser(url) }, why);
    }
    return cached.client;
  };
}

/** Binds the rollout to one endpoint until the trainer withdraws it or it fails during a turn. */
function bindEndpoint(config: PolicyConfig, { followed, endpoints, rolloutId, attempt }: PolicyDeps) {
  const key = `${rolloutId} ${attempt}`;
  const known = (): readonly string[] => {
    const own = followed.record()?.endpoints ?? [];
    return own.length > 0 ? own : config.urls;
  };
  let bound = endpoints.bind(known(), key);
  const bindTo = (next: typeof bound): void => {
    bound[Symbol.dispose]();
    bound = next;
  };
  return {
    get url() {
      return bound.url;
    },
    /** Moves to another endpoint when the policy no longer names the bound one. */
    rebind(): void {
      if (!known().includes(bound.url)) bindTo(endpoints.bind(known(), key));
    },
    /** Moves to another endpoint that is neither set aside nor in `left`. Returns false when there is none. */
    move(left: ReadonlySet<string>): boolean {
      const others = known().filter((url) => url !== bound.url && !left.has(url));
      const next = endpoints.bindInUse(others, key);
      if (next) bindTo(next);
      return next !== null;
    },
    [Symbol.dispose]: () => bound[Symbol.dispose](),
  };
}
