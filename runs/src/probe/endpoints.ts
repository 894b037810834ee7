/** Probes all endpoints of a training run. */
import { probeTokens, type TokenFinding, type TokenProbeOptions } from './tokenprobe.ts';

/**
 * Probes every endpoint of a run. If the model calls a tool at some endpoints only, the others get a warning; if at none, a failure.
 * Never throws for an endpoint's behaviour.
 */
export async function probeEndpoints(
  urls: readonly string[],
  options: TokenProbeOptions,
): Promise<{ url: string; found: Omit<TokenFinding, 'silent'>[] }[]> {
  const probed = await Promise.all(
    urls.map(async (url) => ({ url, found: await probeTokens(url, options) })),
  );
  const noneCalls = probed.every(({ found }) => found.some(({ silent }) => silent));
  return probed.map(({ url, found }) => ({
    url,
    found: found.map(({ silent, ...finding }) =>
      silent && noneCalls ? { ...finding, status: 'fail' as const } : finding,
    ),
  }));
}
