/** Test tool: requests one turn of a policy with one endpoint of the test. */

import type { PolicyReply } from '@swefarm/policy';
import { originsOf, PolicyConfig, type PolicyKey, RolloutFailure, Secret } from '@swefarm/shared';
import type { Endpoint } from './endpoint.ts';
import { never, policyAt, START } from './scripted.ts';

export const warnings: string[] = [];
export const log = { warn: (_: Record<string, unknown>, message: string) => void warnings.push(message) };
export const KEY = 'sk-very-secret';

/** The operator's key, for the operator's endpoints. */
export const keyFor = (...urls: string[]): PolicyKey => ({
  secret: new Secret(KEY),
  origins: originsOf(urls),
});
export const open = (url: string, config: Record<string, unknown> = {}, apiKey: PolicyKey | null = null) =>
  policyAt(PolicyConfig.parse({ urls: [url], model: 'm', version: 'v', patience: 20, ...config }), {
    ...{ apiKey, attempt: 2, log },
  });
export const ask = (endpoint: Endpoint, config: Record<string, unknown> = {}, messages = START) =>
  open(endpoint.url, config).complete(messages, [], never);
export const answered = async (asked: ReturnType<typeof ask>): Promise<PolicyReply> => {
  const reply = await asked;
  if ('context_overflow' in reply) throw new Error(`overflow: ${reply.message}`);
  return reply;
};
export const failureOf = async (asked: Promise<unknown>): Promise<RolloutFailure> => {
  const error = await asked.then(
    () => new Error('it answered'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof RolloutFailure)) throw error;
  return error;
};
