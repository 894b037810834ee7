/** Tells within seconds, before anything is queued, whether an endpoint can serve a run at all. */
import type { Finding, PolicyKey } from '@swefarm/shared';
import { fail, ok, warn } from './finding.ts';
import { ask } from './probe.ts';

const TIMEOUT_MS = 10_000;

export type ReachOptions = { model: string; apiKey: PolicyKey | null; signal: AbortSignal };

/**
 * Reads the endpoint's list of models. One short completion follows only where the list does not decide: some servers have no list,
 * or serve models that it lacks. `fail`: each rollout would fail the same way; `warn`: the endpoint is overloaded or still starts.
 * Never throws for what the endpoint does.
 */
export async function probeReachable(url: string, { model, apiKey, signal }: ReachOptions): Promise<Finding> {
  const asker = { apiKey, signal };
  const listed = await ask(url, asker, (client, limited) => client.models(limited), TIMEOUT_MS);
  const ids = 'answer' in listed ? listed.answer.map(({ id }) => id) : [];
  if (ids.includes(model)) return ok('endpoint', `serves ${model}`);
  if ('problem' in listed && (listed.slow || listed.unreachable))
    return (listed.slow ? warn : fail)('endpoint', listed.problem, listed.remedy);
  const body = { model, messages: [{ role: 'user', content: 'Say yes.' }], max_tokens: 4 };
  const tried = await ask(
    url,
    asker,
    async (client, limited): Promise<unknown> =>
      JSON.parse((await client.postWhole('chat', [JSON.stringify(body)], limited)).toString('utf8')),
    TIMEOUT_MS,
  );
  if ('answer' in tried) return ok('endpoint', `answers as ${model}`);
  const { problem, remedy, status, slow } = tried;
  const passes = slow === true || status === 429 || (status !== undefined && status >= 500);
  if (passes) return warn('endpoint', problem, remedy);
  const known = ids.length > 0 ? `use one of: ${ids.slice(0, 5).join(', ')}` : remedy;
  return fail('endpoint', `model ${model}: ${problem}`, status === 401 || status === 403 ? remedy : known);
}
