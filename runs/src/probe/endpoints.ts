/** Probes all endpoints of a training run together: a model that calls no tool at one of them may call one at another. */
import { probeTokens, type TokenFinding, type TokenProbeOptions } from './tokenprobe.ts';

/**
 * Tries every endpoint of a run. If the model calls a tool at some endpoints only, the others give a warning; at none, a failure.
 * Never throws for what an endpoint does.
 */
export async function probeEndpoints(
  urls: readonly string[],
  options: TokenProbeOptions,
): Promise<{ url: string; found: Omit<TokenFinding, 'silent'>[] }[]> {
  const tried = await Promise.all(urls.map(async (url) => ({ url, found: await probeTokens(url, options) })));
  const nobodyCalls = tried.every(({ found }) => found.some(({ silent }) => silent));
  return tried.map(({ url, found }) => ({
    url,
    found: found.map(({ silent, ...finding }) =>
      silent && nobodyCalls ? { ...finding, status: 'fail' as const } : finding,
    ),
  }));
}
