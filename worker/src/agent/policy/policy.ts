/** The policy client of a rollout: it returns one answer per call and classifies every fault. */

import { expertModeOf, openTurnClient, type TurnClient } from '@swefarm/policy';
import { effectiveSampling, type PolicyConfig } from '@swefarm/shared';
import type { Policy } from '../agent.ts';
import { REAL_TIME } from '../deadline.ts';
import { bindEndpoint } from './binding.ts';
import { detokenize } from './detokenize.ts';
import { withoutUser } from './redact.ts';
import { servedModel } from './servedmodels.ts';
import { requestTurn } from './turn.ts';
import { cachedClient, type PolicyDeps, type TurnContext } from './turncontext.ts';
import { createVersions } from './versions.ts';

/**
 * Opens the policy for one attempt, bound to the least loaded endpoint; dispose it to release the binding. `complete` throws RolloutFailure
 * `policy_*`, or the signal's reason when aborted. After a fault it may continue at another endpoint, without sampling received tokens
 * again. While the trainer updates the policy, it sends nothing and no clock runs.
 */
export function openPolicy(config: PolicyConfig, deps: PolicyDeps): Policy & Disposable {
  const { followed, endpoints, apiKey } = deps;
  const binding = bindEndpoint(config, { followed, endpoints, key: `${deps.rolloutId} ${deps.attempt}` });
  const received = { tokens: 0, seconds: 0 };
  const modelLength = async () => (await servedModel(binding.url, config.model, apiKey)).length;
  let turnClient: Promise<TurnClient> | null = null;
  const context: TurnContext = {
    config,
    deps,
    binding,
    addThroughput(tokens, seconds) {
      if (tokens === 0) return;
      received.tokens += tokens;
      received.seconds += seconds;
    },
    time: deps.time ?? REAL_TIME,
    clientAt: cachedClient(deps),
    versions: createVersions(config, deps),
    turnClient() {
      turnClient ??= openTurnClient(config, {
        rolloutId: deps.rolloutId,
        limits: { ...deps.limits, modelLength },
      });
      return turnClient;
    },
  };
  return {
    get endpoint() {
      return withoutUser(binding.url);
    },
    model: config.model,
    tokenMode: config.token_mode,
    requireTokens: config.require_tokens,
    experts: expertModeOf(config),
    sampling: effectiveSampling(config),
    pause: followed.pause,
    throughput: () => ({ ...received }),
    async complete(messages, tools, signal) {
      using _awaiting = deps.awaiting?.();
      return await requestTurn(context, { messages, tools, signal });
    },
    detokenize: (ids, signal) => detokenize(context.clientAt(binding.url), config.model, ids, signal),
    [Symbol.dispose]: () => binding[Symbol.dispose](),
  };
}
