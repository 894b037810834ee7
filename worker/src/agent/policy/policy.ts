/** The policy client: one endpoint for a whole rollout, one answer a call, every fault named. */
import {
  addressOf,
  effectiveSampling,
  expertModeOf,
  keyAt,
  type Limits,
  OverflowSignal,
  openSpeaker,
  type Piece,
  type PolicyConfig,
  type PolicyKey,
  type Post,
  RolloutFailure,
  type Route,
  type Speaker,
  UsageError,
  WireFault,
} from '@swefarm/shared';
import type { ContextOverflow, Policy } from '../agent.ts';
import { startDeadline } from '../deadline.ts';
import { untilServing } from '../pause.ts';
import { sentOnce } from './body.ts';
import { openClient } from './connection.ts';
import type { Endpoints, Held } from './endpoints.ts';
import { PolicyFault, readFault, readWireFault } from './fault.ts';
import { servedModel } from './models.ts';
import { retrying } from './retry.ts';
import { spell } from './spell.ts';
import type { Followed } from './watch.ts';

export type PolicyDeps = {
  /** Null when the endpoint wants none; endpoints of other origins than its own never see it. */
  apiKey: PolicyKey | null;
  rolloutId: string;
  attempt: number;
  /** What the run allows beside the endpoint's own limit. */
  limits: Pick<Limits, 'contextLimit' | 'sequenceBudget'>;
  /** What the trainer says of this policy; must outlive it. */
  followed: Followed;
  endpoints: Endpoints;
  /** Begun whenever an answer is awaited, and disposed when it came. */
  awaiting?: () => Disposable;
  log: { warn(fields: Record<string, unknown>, message: string): void };
};

/**
 * Opens the policy for one attempt, bound to the least loaded endpoint; dispose it to free the place. `complete` throws
 * RolloutFailure `policy_*`, or the signal's reason when aborted; one request that waited `request_timeout` seconds is
 * never sent again within the turn. While the trainer updates the policy, nothing is sent and no clock runs.
 */
export function openPolicy(config: PolicyConfig, deps: PolicyDeps): Policy & Disposable {
  const { followed, endpoints, apiKey } = deps;
  const place = openPlace(config, deps);
  let speaker: Promise<Speaker> | null = null;
  const clientAt = keptClient(deps);
  let heardVersion: string | null = null;

  const said = (): string | null => followed.record()?.version ?? heardVersion ?? config.version;
  /** The header of the answer knows best; the record knows better than what the run was told at its start. */
  const settleVersion = async (header: string | null): Promise<string | null> => {
    if (header !== null) heardVersion = header;
    else if (said() === null) heardVersion = (await servedModel(place.url, config.model, apiKey)).version;
    return header ?? said();
  };

  return {
    get endpoint() {
      return withoutUser(place.url);
    },
    model: config.model,
    tokenMode: config.token_mode,
    requireTokens: config.require_tokens,
    experts: expertModeOf(config),
    sampling: effectiveSampling(config),
    pause: followed.pause,
    async complete(messages, tools, signal) {
      using _awaiting = deps.awaiting?.();
      await untilServing(followed.pause, signal);
      const url = place.settle();
      const endpoint = withoutUser(url);
      const started = performance.now();
      const pausedBefore = followed.pause.seconds();
      const seconds = () => (performance.now() - started) / 1000 - (followed.pause.seconds() - pausedBefore);
      const spoken = () => ({
        changed: followed.record()?.changed_at ?? 0,
        version: followed.record()?.version ?? null,
      });
      let sent = spoken();
      try {
        speaker ??= openSpeaker(config, {
          rolloutId: deps.rolloutId,
          limits: {
            ...deps.limits,
            modelLength: async () => (await servedModel(place.url, config.model, apiKey)).length,
          },
        });
        const { ask } = await speaker;
        let header: string | null = null;
        const onVersion = (version: string | null) => (header = version);
        const client = clientAt(url);
        const post: Post = (route, body) =>
          request(route, body, { client, url, config, deps, signal, onVersion });
        const answer = await retrying(
          async () => {
            sent = spoken();
            header = null;
            return await ask(messages, tools, post).catch((error: unknown) => {
              throw error instanceof WireFault ? readWireFault(error) : error;
            });
          },
          {
            patienceSeconds: config.patience,
            pause: followed.pause,
            signal,
            async excused() {
              await followed.refresh();
              return followed.pause.paused || spoken().changed !== sent.changed;
            },
            onFault(fault) {
              if (ENDPOINT_FAULTS.has(fault.failureClass) && !fault.busy) {
                endpoints.failed(url, redact(fault.message, apiKey));
              }
            },
            onRetry: (fault, waitSeconds, tries) =>
              deps.log.warn(
                { endpoint, class: fault.failureClass, tries, wait_seconds: waitSeconds },
                `policy request failed, trying again: ${redact(fault.message, apiKey)}`,
              ),
          },
        );
        endpoints.answered(url);
        const end = await settleVersion(header);
        const policyVersion = { start: sent.version ?? end, end };
        return { ...answer, seconds: seconds(), policy_version: policyVersion };
      } catch (error) {
        if (error instanceof OverflowSignal) {
          const overflow: ContextOverflow = {
            context_overflow: true,
            message: redact(error.message, apiKey),
            seconds: seconds(),
          };
          return overflow;
        }
        if (error instanceof UsageError)
          throw new RolloutFailure('policy_bad_request', error.message, { cause: error });
        if (!(error instanceof PolicyFault)) throw error;
        const kept = error.failureClass === 'policy_unauthorized' && withheld(apiKey, url);
        const why = `${error.message}${kept ? `; ${kept}` : ''}`;
        throw new RolloutFailure(error.failureClass, `${endpoint}: ${redact(why, apiKey)}`, {
          cause: error.cause,
        });
      }
    },
    spell: (ids, signal) => spell(place.url, config.model, apiKey, ids, signal),
    [Symbol.dispose]: place.leave,
  };
}

/** What an endpoint is set aside for; anything else would be the same elsewhere. */
const ENDPOINT_FAULTS: ReadonlySet<string> = new Set([
  'policy_unreachable',
  'policy_server_error',
  'policy_silent',
]);

/** Where this rollout is bound: one endpoint, unless the trainer takes that one away. */
function openPlace(config: PolicyConfig, { followed, endpoints, rolloutId, attempt }: PolicyDeps) {
  const known = (): readonly string[] => {
    const own = followed.record()?.endpoints ?? [];
    return own.length > 0 ? own : config.urls;
  };
  let held: Held = endpoints.bind(known(), `${rolloutId} ${attempt}`);
  return {
    get url() {
      return held.url;
    },
    settle(): string {
      if (!known().includes(held.url)) {
        held[Symbol.dispose]();
        held = endpoints.bind(known(), `${rolloutId} ${attempt}`);
      }
      return held.url;
    },
    leave: () => held[Symbol.dispose](),
  };
}

type Client = ReturnType<typeof openClient>;

type Sending = {
  client: Client;
  url: string;
  config: PolicyConfig;
  deps: PolicyDeps;
  signal: AbortSignal;
  onVersion: (version: string | null) => void;
};

/** The client of the endpoint that is asked, from turn to turn: to make one costs a tenth of a turn. */
function keptClient({ apiKey, rolloutId, attempt, log }: PolicyDeps): (url: string) => Client {
  let kept: { url: string; client: Client } | null = null;
  return (url) => {
    if (kept?.url !== url) {
      const headers = { 'x-swefarm-rollout': rolloutId, 'x-swefarm-attempt': String(attempt) };
      kept = { url, client: openClient(url, apiKey, headers) };
      const why = withheld(apiKey, url);
      if (why) log.warn({ endpoint: withoutUser(url) }, why);
    }
    return kept.client;
  };
}

/** One request. The timer covers head and body; aborting closes the socket, which is how the server learns of it. */
async function request(
  route: Route,
  body: Piece[],
  { client, url, config, deps, signal, onVersion }: Sending,
): Promise<Buffer> {
  signal.throwIfAborted();
  // One controller a request: the client keeps listeners on the signal that it is given.
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  let silent = false;
  using _timer = startDeadline(config.request_timeout, deps.followed.pause, () => {
    silent = true;
    controller.abort();
  });
  let phase: 'head' | 'body' = 'head';
  try {
    const { stream, length } = sentOnce(body);
    const response = await client
      .post(addressOf(url, route), {
        body: stream,
        headers: { 'content-type': 'application/json', 'content-length': String(length) },
        signal: controller.signal,
      })
      .asResponse();
    phase = 'body';
    const answer = Buffer.from(await response.arrayBuffer());
    const version = response.headers.get('x-policy-version');
    if (version !== null) onVersion(version);
    return answer;
  } catch (error) {
    signal.throwIfAborted();
    if (silent) {
      throw new PolicyFault('policy_silent', 'never', `no answer within ${config.request_timeout} s`, {
        cause: error,
      });
    }
    throw readFault(error, phase);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function withoutUser(url: string): string {
  const parsed = new URL(url);
  parsed.username = '';
  parsed.password = '';
  return parsed.href.replace(/\/$/, '');
}

/** Endpoints like to quote the key that they refuse. */
const redact = (text: string, apiKey: PolicyKey | null): string =>
  (apiKey ? text.replaceAll(apiKey.secret.reveal(), '[secret]') : text).slice(0, 300);

/** Why this endpoint is not shown the run's key; null when it is, or when there is none. */
function withheld(apiKey: PolicyKey | null, url: string): string | null {
  if (apiKey === null || keyAt(apiKey, url) !== null) return null;
  const origins = apiKey.origins.join(', ') || 'no origin';
  return `the run's key is for ${origins}, so it was not sent here (policy_api_key_origins, api_key_origins)`;
}
