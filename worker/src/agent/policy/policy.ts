/** The policy client: one endpoint for a whole rollout, one answer a call, every fault named. */
import {
  effectiveSampling,
  expertModeOf,
  openTurnClient,
  type PolicyConfig,
  type PolicyKey,
  type TokenLimits,
  type TurnClient,
} from '@swefarm/shared';
import type { Policy } from '../agent.ts';
import { REAL_TIME, type Time } from '../time.ts';
import { bindEndpoint } from './binding.ts';
import { keptClient, withoutUser } from './client.ts';
import type { Endpoints } from './endpoints.ts';
import { servedModel } from './servedmodels.ts';
import { detokenize } from './spell.ts';
import { createThroughput } from './throughput.ts';
import { requestTurn } from './turn.ts';
import { openVersions } from './versions.ts';
import type { FollowedPolicy } from './watch.ts';

export type PolicyDeps = {
  /** Null when the endpoint wants none; endpoints of other origins than its own never see it. */
  apiKey: PolicyKey | null;
  rolloutId: string;
  attempt: number;
  /** What the run allows beside the endpoint's own limit. */
  limits: Pick<TokenLimits, 'contextLimit' | 'sequenceBudget'>;
  /** What the trainer says of this policy; must outlive it. */
  followed: FollowedPolicy;
  endpoints: Endpoints;
  /** Begun whenever an answer is awaited, and disposed when it came. */
  awaiting?: () => Disposable;
  log: { warn(fields: Record<string, unknown>, message: string): void };
  time?: Time;
};

/**
 * Opens the policy for one attempt, bound to the least loaded endpoint; dispose it to free the place. `complete` throws
 * RolloutFailure `policy_*`, or the signal's reason when aborted. An endpoint that was silent for `request_timeout` seconds is not
 * asked again within the turn; one that fails is left for another that is in use. What is kept of an answer that was
 * broken off is not sampled again. While the trainer updates the policy, nothing is sent and no clock runs.
 */
export function openPolicy(config: PolicyConfig, deps: PolicyDeps): Policy & Disposable {
  const { followed, endpoints, apiKey } = deps;
  const place = bindEndpoint(config, { followed, endpoints, key: `${deps.rolloutId} ${deps.attempt}` });
  const heard = createThroughput();
  let speaker: Promise<TurnClient> | null = null;
  const talk = {
    config,
    deps,
    place,
    heard,
    time: deps.time ?? REAL_TIME,
    clientAt: keptClient(deps),
    versions: openVersions(config, deps),
    speaker: () => {
      const modelLength = async () => (await servedModel(place.url, config.model, apiKey)).length;
      speaker ??= openTurnClient(config, {
        rolloutId: deps.rolloutId,
        limits: { ...deps.limits, modelLength },
      });
      return speaker;
    },
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
    throughput: heard.sums,
    async complete(messages, tools, signal) {
      using _awaiting = deps.awaiting?.();
      return await requestTurn(talk, { messages, tools, signal });
    },
    detokenize: (ids, signal) => detokenize(place.url, config.model, apiKey, ids, signal),
    [Symbol.dispose]: () => place[Symbol.dispose](),
  };
}
