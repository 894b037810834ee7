/** Tests within seconds, before a run is queued, whether an endpoint can serve the run. */
import type { Finding, PolicyKey } from '@swefarm/shared';
import { fail, ok, warn } from './finding.ts';
import { ask, askChat } from './probe.ts';

const TIMEOUT_MS = 10_000;

type ReachOptions = { model: string; apiKey: PolicyKey | null; signal: AbortSignal };

/**
 * Reads the list of models. If the list lacks the model, requests a short completion, because some servers omit models from the list.
 * Returns `fail` if every rollout would fail in the same way, and `warn` if the endpoint is overloaded or still starts. Never throws for
 * faults of the endpoint.
 */
export async function probeReachable(url: string, { model, apiKey, signal }: ReachOptions): Promise<Finding> {
  const target = { apiKey, signal };
  const listed = await ask(url, target, (client, limited) => client.models(limited), TIMEOUT_MS);
  const ids = 'answer' in listed ? listed.answer.map(({ id }) => id) : [];
  if (ids.includes(model)) return ok('endpoint', `serves ${model}`);
  if ('problem' in listed && (listed.slow || listed.unreachable))
    return (listed.slow ? warn : fail)('endpoint', listed.problem, listed.remedy);
  const body = { model, messages: [{ role: 'user', content: 'Answer yes.' }], max_tokens: 4 };
  const tried = await askChat(url, target, body, TIMEOUT_MS);
  if ('answer' in tried) return ok('endpoint', `answers as ${model}`);
  const { problem, remedy, status, slow } = tried;
  const passes = slow === true || status === 429 || (status !== undefined && status >= 500);
  if (passes) return warn('endpoint', problem, remedy);
  const known = ids.length > 0 ? `use one of: ${ids.slice(0, 5).join(', ')}` : remedy;
  return fail('endpoint', `model ${model}: ${problem}`, status === 401 || status === 403 ? remedy : known);
}
